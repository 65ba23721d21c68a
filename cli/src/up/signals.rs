//! The signals that end `up`: Ctrl-C, SIGTERM, and the terminal going away. One thread listens; the loop asks.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// Whether one of them came.
#[derive(Debug)]
pub(super) struct Signals {
    came: Receiver<()>,
}

impl Signals {
    pub fn listen() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        // Registered before this returns: from here on no signal kills us half-way.
        let (mut interrupt, mut terminate, mut hangup) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
        };
        let (tell, came) = channel();
        thread::spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    // Nobody listens any more: it has ended.
                    if tell.send(()).is_err() {
                        return;
                    }
                }
            });
        });
        Ok(Signals { came })
    }

    /// Waits so long for one.
    pub fn came(&self, within: Duration) -> bool {
        !matches!(self.came.recv_timeout(within), Err(RecvTimeoutError::Timeout))
    }
}
