//! A connection whose other side must take what it asked for: writing that makes no step for too long ends it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Reading is bounded elsewhere: headers by hyper, bodies by their route.
#[derive(Debug)]
pub struct Guarded<T> {
    inner: T,
    patience: Duration,
    /// Made only when the other side keeps us waiting: most connections never have one.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> Guarded<T> {
    pub fn new(inner: T, patience: Duration) -> Guarded<T> {
        Guarded { inner, patience, stalled: None }
    }

    fn judge<R>(&mut self, cx: &mut Context<'_>, step: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if step.is_ready() {
            self.stalled = None;
            return step;
        }
        let patience = self.patience;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side takes nothing")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Guarded<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Guarded<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.judge(cx, step)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.judge(cx, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.inner).poll_flush(cx);
        self.judge(cx, step)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.judge(cx, step)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_cut() {
        let (near, _far) = tokio::io::duplex(16);
        let mut guarded = Guarded::new(near, Duration::from_millis(20));
        let error = guarded.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
