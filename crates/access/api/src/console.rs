//! The pages of the console: files in the binary, which fetch nothing from elsewhere.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use axum::routing::get;

/// No script or style but these files', and no other page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FILES: [(&str, &str, &str); 9] = [
    ("/", "text/html; charset=utf-8", include_str!("../console/index.html")),
    ("/console/console.js", "text/javascript; charset=utf-8", include_str!("../console/console.js")),
    ("/console/map.js", "text/javascript; charset=utf-8", include_str!("../console/map.js")),
    ("/console/jobs.js", "text/javascript; charset=utf-8", include_str!("../console/jobs.js")),
    ("/console/shards.js", "text/javascript; charset=utf-8", include_str!("../console/shards.js")),
    ("/console/query.js", "text/javascript; charset=utf-8", include_str!("../console/query.js")),
    ("/console/console.css", "text/css; charset=utf-8", include_str!("../console/console.css")),
    // uPlot 1.6.32, MIT: ../console/uplot.LICENSE.
    ("/console/uplot.js", "text/javascript; charset=utf-8", include_str!("../console/uplot.js")),
    ("/console/uplot.css", "text/css; charset=utf-8", include_str!("../console/uplot.css")),
];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, (path, kind, text)| {
        let headers = [
            (CONTENT_TYPE, *kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-cache"),
        ];
        router.route(path, get(move || async move { (headers, *text).into_response() }))
    })
}
