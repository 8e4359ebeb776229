//! `forebay savings`.

use forebay_api::{Price, Savings};
use forebay_client::Client;

use super::status::ask;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// Shows what shared storage was spared.
pub(crate) async fn run(client: &Client, price: Price, json: bool) -> Outcome {
    if !price.is_one() {
        return Err(Failure::Usage("prices are numbers from 0 to 10^12: --per-gb 0.02 --per-1000-requests 0.0004".to_string()));
    }
    let savings = Savings::of(&*ask(client).await?, price);
    let mut output = Output::new(json);
    if json {
        output.record(&savings)?;
    } else {
        for line in savings.lines() {
            output.line(&line)?;
        }
    }
    output.finish()
}
