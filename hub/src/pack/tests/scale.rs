//! What one change costs among many assignments.

use std::time::Instant;

use super::*;

/// Assignments per cluster type.
const EACH: usize = 50;

async fn one_of_many(types: usize) -> (Duration, Duration, usize) {
    let world = World::new().await;
    let apps: Vec<(String, String)> =
        (0..EACH).map(|n| (format!("app-{n}/service.yaml"), SERVICE.replace("hello", &format!("hello-{n}")))).collect();
    let items: Vec<(&str, Item<'_>)> = apps.iter().map(|(path, text)| (path.as_str(), Item::File(text))).collect();
    world.app.commit("dev", &items);
    let mut files: Vec<(String, String)> = Vec::new();
    for kind in 0..types {
        for n in 0..EACH {
            files.extend(kubernetes(&format!("type-{kind}"), &format!("app-{n}"), &format!("app-{n}"), "1"));
        }
    }
    let begun = Instant::now();
    let packed = world.pack(&files).await;
    let first = begun.elapsed();
    assert_eq!(packed.problems, []);
    let last = files.len() - 1;
    files[last].1 = files[last].1.replace("A: \"1\"", "A: \"2\"");
    let items: Vec<(&str, Item<'_>)> = files.iter().map(|(path, text)| (path.as_str(), Item::File(text))).collect();
    let commit = world.platform.commit("dev", &items);
    let begun = Instant::now();
    let packed = world.packer.pack("dev", &world.head(commit)).await.unwrap();
    (first, begun.elapsed(), packed.built)
}

#[tokio::test]
async fn one_change_among_many_packs_one() {
    let (_, _, built) = one_of_many(4).await;
    assert_eq!(built, 1);
}

/// Of `./tests/bench figures`.
#[cfg(feature = "figures")]
#[tokio::test]
async fn figure_one_change_among_ten_thousand_costs_tens_of_milliseconds() {
    let (first, second, built) = one_of_many(200).await;
    println!("10,000 assignments: all {first:?}, one changed {second:?}, {built} packed");
    println!("FIGURE one_packed_of_10000 {}", second.as_millis());
    assert!(second < Duration::from_millis(200));
}
