//! Processes that meet in a folder are joined as a mesh is.

use std::{fs, path::PathBuf, process, thread, time::Duration};

use ibverbs_sim::{SocketWire, Wire};

/// A folder of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("verbs-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn everybody_reaches_everybody() {
    let folder = Folder::new("meet");
    thread::scope(|scope| {
        for process in (0..4).rev() {
            let folder = &folder.0;
            scope.spawn(move || {
                let patience = Duration::from_secs(60);
                let wire = SocketWire::join(folder, process, 4, patience).unwrap();
                assert_eq!((wire.process(), wire.processes()), (process, 4));
                let others = (0..4).filter(|other| *other != process);
                others.clone().for_each(|other| wire.send(other, vec![process as u8, other as u8]));
                let mut from = Vec::new();
                while from.len() < 3 {
                    wire.poll(&mut |sender, packet| {
                        assert_eq!(packet, [sender as u8, process as u8]);
                        from.push(sender);
                    });
                    thread::yield_now();
                }
                from.sort_unstable();
                assert!(from.into_iter().eq(others));
            });
        }
    });
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn who_waits_for_nobody_is_told_so() {
    let folder = Folder::new("alone");
    assert!(SocketWire::join(&folder.0, 1, 2, Duration::from_millis(2)).is_err());
    assert!(SocketWire::join(&folder.0.join("none"), 0, 1, Duration::ZERO).is_err());
}
