//! Descriptors that are kept for who comes when there are no others left.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};

/// So many: each has one who comes for as long as one answer takes.
const KEPT: usize = 4;

/// Descriptors of a port that are given up while a process has no others, so that who looks whether it is there is answered all the same.
/// A connection that comes by one of them is for one short answer, and [`Self::keep`] takes its descriptor back when it is closed. Clones are
/// the same.
#[derive(Clone, Debug, Default)]
pub struct Spare(Arc<Mutex<Vec<File>>>);

impl Spare {
    /// Takes those that are missing, as far as there are any.
    pub fn keep(&self) {
        let mut kept = self.0.lock();
        while kept.len() < KEPT {
            let Ok(file) = File::open("/dev/null") else { return };
            kept.push(file);
        }
    }

    /// After `error`, which accepting at `listener` has failed with: where that was for want of descriptors and one is kept, the connection that
    /// waits there, if one does. The system says that there are none before it looks whether anybody has come, so that most often nobody has.
    ///
    /// Else the error, or that of the second try.
    pub fn accept(&self, listener: &TcpListener, error: io::Error) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let wants_one = matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
        let Some(given) = wants_one.then(|| self.0.lock().pop()).flatten() else { return Err(error) };
        drop(given);
        match listener.accept().now_or_never() {
            Some(accepted) => accepted.map(Some),
            None => {
                self.keep();
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn descriptors_are_given_up_for_want_of_others_alone_and_for_who_has_come() {
        let (listener, spare) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Spare::default());
        let none_left = || io::Error::from(Errno::MFILE);
        let kept = || spare.0.lock().len();
        assert!(spare.accept(&listener, none_left()).is_err(), "none is kept yet");
        spare.keep();
        assert!(spare.accept(&listener, io::ErrorKind::ConnectionAborted.into()).is_err());
        assert!(spare.accept(&listener, none_left()).unwrap().is_none() && kept() == KEPT, "nobody has come");
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let come = async {
            loop {
                match spare.accept(&listener, none_left()).unwrap() {
                    Some((stream, _)) => return stream,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let _stream = come.await;
        assert_eq!(kept(), KEPT - 1, "one is given to the connection");
        spare.keep();
        assert_eq!(kept(), KEPT);
    }
}
