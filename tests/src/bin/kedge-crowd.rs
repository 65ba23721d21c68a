//! Many simulated agents in one process, for load: `kedge-crowd TOKEN COUNT`. See `agent::crowd::run` for what it prints.

use kedge_tests::agent::crowd;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(token), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("kedge-crowd TOKEN COUNT".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(crowd::run(&token.parse()?, count.parse()?))?;
    Ok(())
}
