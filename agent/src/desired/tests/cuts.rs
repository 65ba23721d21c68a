//! Power cuts and full disks while something is remembered.

use kedge_durable::fake::{FakeDisk, Power, every_cut};

use super::*;

#[test]
fn a_power_cut_leaves_the_old_memory_or_the_new_one_whole() {
    let room = Room::new();
    let news = PollAnswer {
        membership: Some(room.hub.sign(&room.membership(2, "canary"))),
        ..with_state(room.state(3, "canary"))
    };
    let open = |disk: Arc<dyn Disk>| Memory::open(disk, &room.paths, &room.identity).unwrap().memory;
    let checked = every_cut(
        |disk| {
            disk.make_folder(&room.paths.state()).unwrap();
            open(Arc::new(disk.clone())).accept(&with_state(room.state(7, "all"))).unwrap();
        },
        |disk| open(disk).accept(&news).map(drop),
        |disk, power| {
            let request = open(Arc::new(disk.clone())).request_base();
            let found = (request.membership.0, request.generation.0);
            let allowed = if power == Power::CutAfterwards { &[(2, 3)][..] } else { &[(1, 7), (2, 3)] };
            assert!(allowed.contains(&found), "{found:?} {power:?}");
        },
    );
    assert!(checked > 10, "{checked}");
}

#[test]
fn a_full_disk_leaves_the_old_memory_and_a_later_try_goes_well() {
    let room = Room::new();
    let disk = FakeDisk::new();
    disk.make_folder(&room.paths.state()).unwrap();
    let mut memory = Memory::open(Arc::new(disk.clone()), &room.paths, &room.identity).unwrap().memory;
    disk.set_full(true);
    assert!(memory.accept(&with_state(room.state(7, "all"))).is_err());
    assert_eq!(memory.request_base().generation, Generation(0));
    disk.set_full(false);
    assert!(memory.accept(&with_state(room.state(7, "all"))).unwrap().state_changed);
}
