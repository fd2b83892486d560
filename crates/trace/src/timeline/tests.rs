use super::*;
use ftlab_core::flash::{Cause, Operation};
use ftlab_core::workload::Op;

fn one_chip() -> Tracks {
    let chip = ftlab_core::sim::Track { channel: 0, name: "chip 0".into(), rank: 0 };
    Tracks {
        controller: Vec::new(),
        buffer: false,
        channels: 1,
        luns: vec![chip],
        overlap: false,
        rare: false,
        tenants: None,
    }
}

#[test]
fn ends_once_it_has_grown_to_its_bound() {
    let path = std::env::temp_dir().join(format!("ftlab-timeline-{}", std::process::id()));
    let mut timeline = Timeline::create(&path, one_chip(), None, 100).unwrap();
    for at in 0..1_000_u64 {
        let (begin_ns, end_ns) = (at * 10, at * 10 + 10);
        let request = Dispatch {
            id: at + 1,
            arrival_ns: begin_ns,
            dispatch_ns: begin_ns,
            op: Op::Read,
            offset: 0,
            size: 4096,
            lpn: 0,
            pages: 1,
            stream: 0,
        };
        timeline.activity(&Activity {
            number: None,
            chip: 0,
            channel: 0,
            lun: 0,
            stage: Stage::Cells,
            suspended: false,
            operation: Operation::Read,
            cause: Cause::Host,
            lpn: Some(0),
            request: Some(request),
            begin_ns,
            end_ns,
        });
        timeline.complete(&Completion {
            id: at + 1,
            arrival_ns: begin_ns,
            dispatch_ns: begin_ns,
            complete_ns: end_ns,
            failed: false,
            op: Op::Read,
            offset: 0,
            size: 4096,
            mapping_misses: 0,
            prioritized: false,
            expired: false,
            batch: 0,
            channel_batch: 0,
            buffered: 0,
            stream: 0,
        });
    }
    assert!(timeline.open.is_empty() && timeline.senders.lanes(0).count == 1);
    let drawn = timeline.finish().unwrap();
    std::fs::remove_file(&path).unwrap();
    // There are three events per request; the 34th request brings their number to 102, and the limit takes effect when
    // that request completes.
    assert_eq!(drawn, Drawn { events: 102, cut_ns: Some(340) });
}

#[test]
fn lanes_are_used_again_once_they_are_free() {
    let mut lanes = lanes::Lanes::default();
    assert_eq!((lanes.take(0, 2), lanes.take(0, 2), lanes.take(0, 2)), (Some(0), Some(1), None));
    lanes.free(0, 10);
    lanes.free(1, 20);
    assert_eq!(lanes.take(9, 2), None);
    assert_eq!(lanes.take(30, 2), Some(1));
    assert_eq!(lanes.take(10, 2), Some(0));
    assert_eq!(lanes.take(5, 3), Some(2));
}
