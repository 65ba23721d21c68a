//! An API server that goes away and comes back: a proxy in front of it that the test closes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Trial, settings};
use crate::observed::ObjectState;

struct Proxy {
    open: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    port: u16,
}

impl Proxy {
    fn start(to: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, streams): (_, Arc<Mutex<Vec<TcpStream>>>) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (gate, kept, to) = (Arc::clone(&open), Arc::clone(&streams), to.to_owned());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Some(far) = gate.load(Ordering::SeqCst).then(|| TcpStream::connect(&to).ok()).flatten() else {
                    continue;
                };
                kept.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (from, into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    thread::spawn(move || pass(from, into));
                }
            }
        });
        Proxy { open, streams, port }
    }

    fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
        self.streams.lock().unwrap().drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    }

    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut into: TcpStream) {
    let mut piece = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut piece) {
        if read == 0 || into.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    _ = into.shutdown(Shutdown::Both);
}

#[test]
fn what_happened_while_the_server_was_away_is_seen_and_what_was_asked_is_done() {
    let Some(direct) = Trial::begin("direct") else { return };
    let kubeconfig = std::fs::read_to_string(std::env::var_os("KEDGE_TEST_KUBECONFIG").unwrap()).unwrap();
    let server = kubeconfig.split("https://").nth(1).unwrap().split(['"', '\n', ',', '\'']).next().unwrap().to_owned();
    let proxy = Proxy::start(&server);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.replace(&server, &format!("127.0.0.1:{}", proxy.port))).unwrap();
    let mut trial = Trial::at(&path, "away");
    let (map, other) = (trial.goal(settings("colours", "red")), trial.goal(settings("other", "red")));
    trial.put(&[&map, &other]).0.unwrap();
    assert_eq!(trial.look(&map), Some(ObjectState::AsApplied));

    proxy.close();
    direct.edit(&map.id, &json!({"data": {"colour": "blue"}}));
    direct.delete(&other.id);
    assert_eq!(trial.look(&map), Some(ObjectState::AsApplied), "the last that is known");
    let new = trial.goal(settings("new", "red"));
    let opener = thread::spawn(move || {
        thread::sleep(Duration::from_secs(3));
        proxy.open();
        proxy
    });
    let began = Instant::now();
    trial.put(&[&new]).0.unwrap();
    println!("applied after {:?}", began.elapsed());
    assert!(began.elapsed() >= Duration::from_secs(3));
    let _proxy = opener.join().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while trial.look(&map) == Some(ObjectState::AsApplied) || trial.look(&other) == Some(ObjectState::AsApplied) {
        assert!(Instant::now() < end, "the watches didn't come back");
        thread::sleep(Duration::from_millis(50));
    }
    println!("seen after {:?}", began.elapsed());
    assert_eq!(trial.look(&map), Some(ObjectState::Differs("data.colour is blue instead of red".to_owned())));
    assert_eq!(trial.look(&other), Some(ObjectState::Absent));
}
