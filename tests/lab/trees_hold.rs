//! File systems that keep less than others: copysim measures on them, and says what is not kept.

#[path = "../fixtures/exfat.rs"]
mod exfat;

use crate::program::Order;
use crate::{left_in, needs};
use exfat::Exfat;

#[test]
fn field_g18_a_file_system_without_permissions_is_measured_and_that_is_said() {
    needs!("mkfs.exfat", "mount.exfat-fuse");
    let Some(exfat) = Exfat::start() else { return };
    for scenario in ["jpg-same-drive", "jpg-cross-drive"] {
        let ended = Order::new(scenario, &exfat.path()).with("--scale 0.2% --runs 1").done();
        let phase = ended.phase(1);
        println!("{} {}", phase["engine"], phase["flags"]);
        phase.is_verified();
        // Copied within it the permissions are those that all files have there.
        let lacks = scenario == "jpg-cross-drive";
        let kept: Vec<_> = phase["engine"]["preserve"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        assert_eq!(kept, if lacks { vec!["mtime"] } else { vec!["mtime", "permissions"] });
        assert_eq!(phase.flags("note").contains(&"attributes-lost"), lacks, "{}", phase["flags"]);
        assert_eq!(left_in(&exfat.path()), Vec::<String>::new());
    }
}
