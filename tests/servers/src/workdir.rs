//! A directory for one server.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory under the system's temporary one, removed on drop.
///
/// A lock on a file in it says that its owner lives. The first directory of a process sweeps away those of owners
/// that were killed before they could.
#[derive(Debug)]
pub(crate) struct Workdir {
    path: PathBuf,
    _lock: File,
}

const PREFIX: &str = "leasehold-servers-";
const LOCK: &str = "owner.lock";

static NEXT: AtomicU32 = AtomicU32::new(0);
static SWEPT: Once = Once::new();

impl Workdir {
    pub(crate) fn create() -> io::Result<Self> {
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            let (path, making) =
                (std::env::temp_dir().join(&name), std::env::temp_dir().join(format!("making-{name}")));
            if path.exists() {
                continue;
            }
            match fs::create_dir(&making) {
                Ok(()) => {
                    let lock = File::create(making.join(LOCK))?;
                    lock.lock()?;
                    // Under its name once it is locked: the sweep of another process would take it for an orphan before.
                    fs::rename(&making, &path)?;
                    return Ok(Self { path, _lock: lock });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        // Nothing can be done about a directory that does not go; the next sweep tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_orphaned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory without its lock file is just being made or removed, and so is not an orphan.
fn is_orphaned(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_owner() {
        let workdir = Workdir::create().expect("created");
        let path = workdir.path().to_owned();
        fs::write(path.join("file"), "x").expect("written");
        assert!(!is_orphaned(&path));
        drop(workdir);
        assert!(!path.exists());
    }

    #[test]
    fn a_sweep_takes_only_orphans() {
        let base = Workdir::create().expect("created");
        let orphan = base.path().join(format!("{PREFIX}0-0"));
        let owned = base.path().join(format!("{PREFIX}0-1"));
        for path in [&orphan, &owned] {
            fs::create_dir(path).expect("created");
        }
        File::create(orphan.join(LOCK)).expect("created");
        let lock = File::create(owned.join(LOCK)).expect("created");
        lock.lock().expect("locked");
        sweep(base.path());
        assert!(!orphan.exists());
        assert!(owned.exists());
    }
}
