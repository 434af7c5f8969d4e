//! Every fault of a lab drive does what it says, and stops when told to.

use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use crate::lab::drive::Speed;
use crate::lab::faults::{Beyond, Damage};
use crate::lab::log::{Kind, now_ns};
use crate::lab::mount::LabDrive;
use crate::lab::transport::Aligned;
use crate::{close, needs, noise, open, served_ns, stream};

const BLOCK: u64 = 1 << 16;

/// A drive with noise in its first 1 MiB, and the noise.
fn noisy() -> std::io::Result<(LabDrive, Vec<u8>)> {
    let lab = LabDrive::builder().start()?;
    let noise = noise(1 << 20);
    let mut buffer = Aligned::new(noise.len());
    buffer.bytes().copy_from_slice(&noise);
    open(lab.device())?.write_all_at(buffer.bytes(), 0)?;
    Ok((lab, noise))
}

fn read(lab: &LabDrive, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut buffer = Aligned::new(length);
    open(lab.device())?.read_exact_at(buffer.bytes(), offset)?;
    Ok(buffer.bytes().to_vec())
}

#[test]
fn a_speed_changes_at_once_or_after_so_many_bytes() {
    needs!();
    let lab = LabDrive::builder().speed(Speed::rate(100_000_000)).start().unwrap();
    lab.set_speed_after(40 << 20, Speed::rate(20_000_000));
    stream(lab.device(), Kind::Write, 0, 512 << 10, 120).unwrap();
    let (before, after) = (lab.log.requests()[..80].to_vec(), lab.log.requests()[80..].to_vec());
    assert_eq!((before.iter().map(|request| request.length).sum::<u64>(), after.len()), (40 << 20, 40));
    assert!(close(served_ns(&before), (512 << 10) * 10, 40), "{}", served_ns(&before));
    assert!(close(served_ns(&after), (512 << 10) * 50, 40), "{}", served_ns(&after));
    lab.log.clear();
    lab.set_speed(Speed::rate(200_000_000));
    stream(lab.device(), Kind::Write, 0, 512 << 10, 200).unwrap();
    assert!(close(served_ns(&lab.log.requests()), (512 << 10) * 5, 40), "{}", served_ns(&lab.log.requests()));
}

#[test]
fn a_delay_is_added_to_each_request() {
    needs!();
    let lab = LabDrive::builder().start().unwrap();
    lab.faults.delay(Duration::from_millis(5));
    let wall = stream(lab.device(), Kind::Read, 0, 4096, 40).unwrap();
    assert!(wall > 195_000_000, "{wall}");
    assert!(close(served_ns(&lab.log.requests()), 5_000_000, 20), "{}", served_ns(&lab.log.requests()));
    lab.faults.clear();
    lab.log.clear();
    stream(lab.device(), Kind::Read, 0, 4096, 40).unwrap();
    assert!(served_ns(&lab.log.requests()) < 2_500_000, "{}", served_ns(&lab.log.requests()));
}

#[test]
fn requests_fail_as_ordered_where_ordered() {
    needs!();
    let lab = LabDrive::builder().start().unwrap();
    let file = open(lab.device()).unwrap();
    lab.faults.fail(Kind::Read, Some(4 * BLOCK..5 * BLOCK), libc::EIO);
    assert_eq!(stream(lab.device(), Kind::Read, 4 * BLOCK, 4096, 1).unwrap_err().raw_os_error(), Some(libc::EIO));
    stream(lab.device(), Kind::Read, 5 * BLOCK, 4096, 1).unwrap();
    stream(lab.device(), Kind::Write, 4 * BLOCK, 4096, 1).unwrap();
    lab.faults.fail(Kind::Write, None, libc::ENOSPC);
    assert!(stream(lab.device(), Kind::Write, 0, 4096, 1).is_err());
    file.sync_all().unwrap();
    lab.faults.fail(Kind::Flush, None, libc::EIO);
    assert!(file.sync_all().is_err());
    assert!(lab.log.sums().errors >= 3, "{:?}", lab.log.sums());
    lab.faults.clear();
    stream(lab.device(), Kind::Write, 0, 4096, 1).unwrap();
    stream(lab.device(), Kind::Read, 4 * BLOCK, 4096, 1).unwrap();
}

#[test]
fn a_hanging_drive_answers_when_released() {
    needs!();
    let lab = LabDrive::builder().start().unwrap();
    lab.faults.hang();
    let wall = std::thread::scope(|scope| {
        let reader = scope.spawn(|| stream(lab.device(), Kind::Read, 0, 4096, 1));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(lab.log.sums().reads, 0);
        lab.faults.release();
        reader.join().unwrap().unwrap()
    });
    assert!((290_000_000..600_000_000).contains(&wall), "{wall}");
}

#[test]
fn a_vanished_drive_fails_everything_at_once() {
    needs!();
    let lab = LabDrive::builder().speed(Speed { latency: Duration::from_secs(1), ..Speed::default() }).start().unwrap();
    lab.faults.vanish(libc::ENXIO);
    let began = now_ns();
    for kind in [Kind::Read, Kind::Write] {
        assert!(stream(lab.device(), kind, 0, 4096, 1).is_err());
    }
    assert!(open(lab.device()).unwrap().sync_all().is_err());
    assert!(now_ns() - began < 500_000_000);
    assert!(lab.log.requests().iter().all(|request| request.errno == libc::ENXIO));
}

#[test]
fn damage_is_where_it_was_ordered_and_nowhere_else() {
    needs!();
    let (lab, noise) = noisy().unwrap();
    let whole = |lab| read(lab, 0, 1 << 20).unwrap();
    assert!(whole(&lab) == noise);
    let block = BLOCK as usize;

    lab.faults.damage(Damage::Flip(1000..1002, 0b100));
    let mut expected = noise.clone();
    expected[1000..1002].iter_mut().for_each(|byte| *byte ^= 0b100);
    assert!(whole(&lab) == expected);
    // A read that begins inside the range.
    assert!(read(&lab, 512, 512).unwrap() == expected[512..1024]);

    lab.faults.damage(Damage::Zero(BLOCK..2 * BLOCK));
    expected[block..2 * block].fill(0);
    assert!(whole(&lab) == expected);

    lab.faults.damage(Damage::Swap(2 * BLOCK, 6 * BLOCK, BLOCK));
    expected[2 * block..3 * block].copy_from_slice(&noise[6 * block..7 * block]);
    expected[6 * block..7 * block].copy_from_slice(&noise[2 * block..3 * block]);
    assert!(whole(&lab) == expected);
    assert!(read(&lab, 2 * BLOCK + 4096, 4096).unwrap() == noise[6 * block + 4096..6 * block + 8192]);

    lab.faults.clear();
    assert!(whole(&lab) == noise);
}

#[test]
fn a_drive_that_lies_about_its_size_wraps_or_loses() {
    needs!();
    let (lab, noise) = noisy().unwrap();
    let end = 3 * BLOCK + 4096;
    lab.faults.stores_only(end, Beyond::Wraps);
    assert!(read(&lab, end, 8 << 10).unwrap() == noise[..8 << 10]);
    // One request over the end is cut there.
    let over = read(&lab, end - 4096, 8192).unwrap();
    assert!(over[..4096] == noise[end as usize - 4096..end as usize] && over[4096..] == noise[..4096]);
    stream(lab.device(), Kind::Write, 5 * end, 4096, 1).unwrap();
    assert_eq!(read(&lab, 0, 4096).unwrap(), [1; 4096]);

    lab.faults.stores_only(end, Beyond::Lost);
    stream(lab.device(), Kind::Write, 2 * end, 4096, 1).unwrap();
    assert_eq!(read(&lab, 2 * end, 4096).unwrap(), [0; 4096]);
    lab.faults.clear();
    assert!(read(&lab, end, 4096).unwrap() == noise[end as usize..end as usize + 4096]);
}
