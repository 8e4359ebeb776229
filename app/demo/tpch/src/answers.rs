//! Compares answers of TPC-H's queries with the published ones, and with another engine's, as strictly as each column allows.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::engine::of_each_query;

/// The published answers at scale factor 1: the number of rows, the columns and rows that are kept.
const ANSWERS: [&str; 22] = of_each_query!("../answers/q", ".csv");

/// What an average or a ratio may differ by, of itself: engines compute some in floats.
const RELATIVE: f64 = 1e-9;
/// The digits behind the point that averages of decimals have at the least.
const AVERAGE_DIGITS: i32 = 6;

/// How a column is compared with what is published.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Plain values and counts: exactly.
    Exact,
    /// Sums of decimals: exactly, but for digits that were rounded away where they were published.
    Sum,
    /// Averages and ratios: within 1e-9 of themselves, but for digits that a decimal does not have.
    Ratio,
}

fn rule(query: usize, column: &str) -> Rule {
    match (query, column) {
        (1, "sum_qty" | "sum_base_price" | "sum_disc_price" | "sum_charge") => Rule::Sum,
        (1, "avg_qty" | "avg_price" | "avg_disc") | (8, "mkt_share") | (14, "promo_revenue") | (17, "avg_yearly") => Rule::Ratio,
        (3 | 5 | 6 | 7 | 10 | 19, "revenue") | (9, "sum_profit") | (11, "value") | (15, "total_revenue") => Rule::Sum,
        (18, "sum(l_quantity)") | (22, "totacctbal") => Rule::Sum,
        _ => Rule::Exact,
    }
}

/// Compares the answer of query `n` (1 to 22) at scale factor 1 with the published one. The error says which row and
/// column differ, and how.
pub fn check_answer(n: usize, batches: &[RecordBatch]) -> Result<(), String> {
    let published = n.checked_sub(1).and_then(|at| ANSWERS.get(at)).ok_or_else(|| format!("there is no query {n}"))?;
    let mut lines = published.lines();
    let rows: usize = lines
        .next()
        .and_then(|line| line.strip_prefix("# rows "))
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| format!("the answer of query {n} has no count of rows"))?;
    let columns: Vec<_> = lines.next().unwrap_or_default().split('|').collect();

    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if found != rows {
        return Err(format!("query {n} answers {found} rows where {rows} are published"));
    }
    let texts = texts(n, batches, &columns)?;
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split('|').collect()).collect();
    let digits: Vec<u32> = (0..columns.len()).map(|column| digits_of(&lines, column)).collect();
    for (at, (line, text)) in lines.iter().zip(&texts).enumerate() {
        for (((column, digits), published), found) in columns.iter().zip(&digits).zip(line).zip(text) {
            if !agree(rule(n, column), *digits, published, found) {
                return Err(format!("query {n}, row {}, {column}: {found:?} where {published:?} is published", at + 1));
            }
        }
    }
    Ok(())
}

/// Compares the answer of query `n` with that of another engine over the same data, value by value and decimal by decimal; the
/// order of rows that sort alike may differ. The error says which row only one of them has.
pub fn same_answer(n: usize, first: &[RecordBatch], batches: &[RecordBatch]) -> Result<(), String> {
    let (mut expected, mut found) = (all_texts(n, first)?, all_texts(n, batches)?);
    if expected.len() != found.len() {
        return Err(format!("query {n} answers {} rows where {} were answered before", found.len(), expected.len()));
    }
    expected.sort();
    found.sort();
    match expected.iter().zip(&found).find(|(expected, found)| expected != found) {
        Some((expected, found)) => {
            Err(format!("query {n}: {} where {} was answered before", found.join("|"), expected.join("|")))
        }
        None => Ok(()),
    }
}

/// All values, row by row.
fn all_texts(n: usize, batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, String> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let schema = first.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    texts(n, batches, &names)
}

/// The values of the named columns, row by row. Only the last column may have another name than the published one: an
/// aggregate without a name is called as the engine likes.
fn texts(n: usize, batches: &[RecordBatch], columns: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let places = columns
            .iter()
            .map(|name| match schema.index_of(name) {
                Ok(at) => Ok(at),
                Err(_) if name.contains('(') => Ok(batch.num_columns() - 1),
                Err(_) => Err(format!("query {n} has no column {name}")),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let options = FormatOptions::default();
        let formatters = places
            .iter()
            .map(|at| ArrayFormatter::try_new(batch.column(*at).as_ref(), &options).map_err(|error| error.to_string()))
            .collect::<Result<Vec<_>, _>>()?;
        rows.extend(
            (0..batch.num_rows()).map(|row| formatters.iter().map(|formatter| formatter.value(row).to_string()).collect()),
        );
    }
    Ok(rows)
}

/// How many digits behind the point a column was published with; zeros at the end may have been left out.
fn digits_of(lines: &[Vec<&str>], column: usize) -> u32 {
    let values = lines.iter().filter_map(|line| decimal(line.get(column)?));
    values.map(|(_, digits)| digits).max().unwrap_or(0)
}

/// A number without its point, and how many digits stand behind that.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_part = part.bytes().all(|byte| byte.is_ascii_digit());
    let number = format!("{whole}{part}").parse().ok()?;
    Some((number, u32::try_from(part.len()).ok().filter(|_| is_part)?))
}

/// Whether a value is the published one, of a column that was published with so many digits behind the point.
fn agree(rule: Rule, digits: u32, published: &str, found: &str) -> bool {
    let (published, found) = (published.trim(), found.trim());
    match rule {
        Rule::Exact => match published.parse::<f64>().ok().zip(found.parse::<f64>().ok()) {
            Some((published, found)) => published == found,
            None => published == found,
        },
        Rule::Sum => decimal(published).zip(decimal(found)).and_then(|(one, other)| is_rounded(one, other, digits)) == Some(true),
        Rule::Ratio => is_near(published, found) == Some(true),
    }
}

/// Whether `found` is `published`, which was rounded to so many digits behind the point; none where they are too large to tell.
fn is_rounded(published: (i128, u32), found: (i128, u32), digits: u32) -> Option<bool> {
    let all = published.1.max(found.1);
    let of_all = |(number, behind): (i128, u32)| 10_i128.checked_pow(all - behind)?.checked_mul(number);
    let difference = of_all(published)?.checked_sub(of_all(found)?)?.checked_abs()?;
    let rounded = match found.1.checked_sub(digits) {
        // Half of the last digit, whichever way a half is rounded.
        Some(away @ 1..) => 5 * 10_i128.checked_pow(away - 1)?.checked_mul(10_i128.checked_pow(all - found.1)?)?,
        Some(0) | None => 0,
    };
    Some(difference <= rounded)
}

/// None where one of them is no number.
fn is_near(published: &str, found: &str) -> Option<bool> {
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, part)| part.len());
    let left_out = match digits(found) < digits(published) {
        true => 0.1_f64.powi(i32::try_from(digits(found)).ok()?.max(AVERAGE_DIGITS)),
        false => 0.0,
    };
    let (published, found) = (published.parse::<f64>().ok()?, found.parse::<f64>().ok()?);
    Some((published - found).abs() <= left_out.max(RELATIVE * published.abs()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Decimal128Array, Int64Array, RecordBatch, StringArray};

    use super::{ANSWERS, Rule, agree, check_answer, same_answer};

    #[test]
    fn every_answer_has_its_rows() {
        let rows = [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7];
        for (at, answer) in ANSWERS.iter().enumerate() {
            assert!(answer.starts_with(&format!("# rows {}\n", rows[at])), "query {}", at + 1);
            let kept = answer.lines().count() - 2;
            let expected = match at + 1 {
                2 => 20,
                11 => 60,
                16 => 40,
                _ => rows[at],
            };
            assert_eq!(kept, expected, "query {}", at + 1);
        }
    }

    #[test]
    fn decimals_are_compared_exactly_but_for_what_was_rounded() {
        let exact = |published, found| agree(Rule::Exact, 0, published, found);
        assert!(exact("10594", "10594") && !exact("10594", "10595"));
        assert!(exact("5098.1", "5098.10") && exact("a b", "a b") && !exact("a", "b"));

        let sum = |digits, published, found| agree(Rule::Sum, digits, published, found);
        assert!(sum(6, "55909065222.827692", "55909065222.827692") && !sum(6, "55909065222.827692", "55909065222.827693"));
        assert!(sum(4, "633508.086", "633508.0860") && !sum(4, "633508.086", "633508.0861"));
        assert!(sum(2, "1000", "1000.0000") && sum(2, "1000", "1000.0050") && !sum(2, "1000", "1000.0051"));
        assert!(sum(2, "-0.25", "-0.2540") && !sum(2, "-0.25", "0.25") && !sum(2, "1", "x") && !sum(2, "1.+5", "1.5"));
        let large = "9".repeat(38);
        assert!(sum(0, &large, &large) && !sum(2, &large, "1.005"));
    }

    #[test]
    fn averages_are_those_that_were_published_as_far_as_they_go() {
        let ratio = |published, found| agree(Rule::Ratio, 0, published, found);
        assert!(ratio("25.522005853257337", "25.522005853257334") && !ratio("25.522005853257337", "25.52200595325733"));
        // An average of decimals has six digits, cut off or rounded.
        assert!(ratio("25.522005853257337", "25.522005") && ratio("25.522005853257337", "25.522006"));
        assert!(!ratio("25.522005853257337", "25.522004") && !ratio("25.522005853257337", "25.5"));
        assert!(ratio("348406.0542857143", "348406.05428571434") && !ratio("348406.0542857143", "348406.02"));
        assert!(!ratio("1", "x"));
    }

    #[test]
    fn a_wrong_answer_is_told() {
        let answer = |counts: [i64; 5]| {
            let names = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
            RecordBatch::try_from_iter([
                ("o_orderpriority", Arc::new(StringArray::from(names.to_vec())) as _),
                ("order_count", Arc::new(Int64Array::from(counts.to_vec())) as _),
            ])
            .unwrap()
        };
        check_answer(4, &[answer([10594, 10476, 10410, 10556, 10487])]).unwrap();
        let error = check_answer(4, &[answer([10594, 10476, 10410, 10556, 10488])]).unwrap_err();
        assert!(error.contains("row 5, order_count: \"10488\""), "{error}");
        assert!(check_answer(4, &[]).unwrap_err().contains("0 rows"));
        assert!(check_answer(0, &[]).is_err() && check_answer(23, &[]).is_err());

        let first = [answer([10594, 10476, 10410, 10556, 10487])];
        let halves = [first[0].slice(3, 2), first[0].slice(0, 3)];
        same_answer(4, &first, &halves).unwrap();
        assert!(same_answer(4, &first, &halves[..1]).unwrap_err().contains("2 rows"));
        assert!(same_answer(4, &first, &[answer([10594, 10476, 10410, 10556, 10486])]).unwrap_err().contains("10486"));
        let decimals = |value: i128| {
            let sum = Decimal128Array::from(vec![value]).with_precision_and_scale(38, 6).unwrap();
            [RecordBatch::try_from_iter([("sum", Arc::new(sum) as _)]).unwrap()]
        };
        let (whole, other) = (decimals(55_909_065_222_827_692_000_001), decimals(55_909_065_222_827_692_000_002));
        assert!(same_answer(1, &whole, &whole).is_ok() && same_answer(1, &whole, &other).is_err());

        let revenue = Decimal128Array::from(vec![1_231_410_782_283]).with_precision_and_scale(30, 4).unwrap();
        check_answer(6, &[RecordBatch::try_from_iter([("revenue", Arc::new(revenue) as _)]).unwrap()]).unwrap();
    }
}
