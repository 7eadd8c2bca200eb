//! IDs issued per second, as `/status` has them.

use std::time::Duration;

use tokio::time::{advance, sleep};

use super::admin;
use crate::Caller;
use crate::admin::rates::watch;

#[tokio::test(start_paused = true)]
async fn status_has_the_rates_since_the_start_and_none_for_a_pause() {
    let admin = admin();
    let rates = async || {
        let status: serde_json::Value =
            serde_json::from_str(&admin.get("/status").await.1).expect("JSON");
        let rates = status["rates"].as_array().expect("a list").clone();
        let pair = |it: serde_json::Value| (it["ageMs"].as_u64(), it["perSecond"].as_f64());
        rates.into_iter().map(pair).collect::<Vec<_>>()
    };
    let state = admin.state.clone();
    let watching = tokio::spawn(async move { watch(&state.rates, || state.issued()).await });
    let moment = Duration::from_millis(1); // lets the watch run
    sleep(moment).await;
    assert_eq!(rates().await, []);

    admin.metrics.issue(Caller::default(), 50);
    sleep(Duration::from_secs(2)).await;
    admin.metrics.issue(Caller::default(), 1_000);
    advance(Duration::from_secs(60)).await;
    sleep(moment).await;
    admin.metrics.issue(Caller::default(), 1);
    sleep(Duration::from_secs(2)).await;
    let known = [(Some(62_002), Some(25.0)), (Some(1), Some(0.5))];
    assert_eq!(rates().await, known);
    watching.abort();
}
