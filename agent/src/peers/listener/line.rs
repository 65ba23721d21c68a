//! A visitor's connection as hyper reads it. Most visitors stay for hours and ask once a minute, and hyper keeps 16 KiB for each: a
//! quiet line looks to it as if the other side had ended, so that it lets go, and is served anew when there is something to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;

use super::answer::Visitor;

pub struct Line {
    stream: TokioIo<Box<TlsStream<TcpStream>>>,
    visitor: Arc<Visitor>,
    quiet: Pin<Box<Sleep>>,
    /// Nothing waits to be sent.
    flushed: bool,
    rests: bool,
}

/// Longer than a lost packet takes to come again: half of a request's head isn't quiet, it is cut off.
const QUIET: Duration = Duration::from_secs(5);

impl Line {
    pub fn new(stream: Box<TlsStream<TcpStream>>, visitor: Arc<Visitor>) -> Line {
        let quiet = Box::pin(tokio::time::sleep(QUIET));
        Line { stream: TokioIo::new(stream), visitor, quiet, flushed: true, rests: false }
    }

    /// The line again, if it ended only for hyper.
    pub fn rested(mut self) -> Option<Line> {
        self.wait();
        std::mem::take(&mut self.rests).then_some(self)
    }

    /// Returns when there is something to read, or the other side is gone.
    pub async fn woken(&self) {
        // What is wrong with it is found when it is read.
        _ = self.stream.inner().get_ref().0.readable().await;
    }

    fn wait(&mut self) {
        self.quiet.as_mut().reset(Instant::now() + QUIET);
    }
}

impl Read for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.wait();
            return read;
        }
        loop {
            ready!(self.quiet.as_mut().poll(cx));
            if self.flushed && self.visitor.idle_since().is_some() {
                self.rests = true;
                return Poll::Ready(Ok(()));
            }
            self.wait();
        }
    }
}

impl Write for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.flushed = false;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if !std::mem::replace(&mut self.flushed, true) {
            self.wait();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushed = false;
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }
}
