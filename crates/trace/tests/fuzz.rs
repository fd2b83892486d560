//! No input makes a reader panic, and every error has the proper form.

use crate::common;

use common::{Folder, check_form, drain};
use ftlab_core::settings::OutOfRange;
use ftlab_trace::{Completions, Options, info, open};
use proptest::prelude::*;

fn all_of(content: &[u8], options: &Options) -> Result<(), TestCaseError> {
    let folder = Folder::new();
    let path = folder.file("trace", content);
    let outcome = open(&path, options)
        .and_then(|mut source| drain(&mut *source).map(|records| (records, source.summary())));
    match outcome {
        Err(error) => check_form(&error.to_string()),
        Ok((records, _)) => {
            prop_assert!(!records.is_empty());
            prop_assert!(records.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
            for record in &records {
                let end = record.offset.checked_add(record.size);
                prop_assert!(end.is_some());
                if let Some(capacity) = options.capacity_bytes {
                    prop_assert!(end.unwrap() <= capacity);
                }
            }
        }
    }
    if let Err(error) = info(&path, options) {
        check_form(&error.to_string());
    }
    Ok(())
}

/// Traces that say when requests completed, in addition to the samples of the layouts.
const COMPLETED: [(&str, &[u8]); 3] = [
    ("csv", b"time_ns,latency_us,op,offset,size,outstanding\n5,1.5,R,0,512,1\n9,,W,4096,512,2\n9,7,F,,,2\n"),
    (
        "blkparse",
        b"8,0 1 1 0.1 7 Q W 8 + 8 [k]\n8,0 1 2 0.1 7 Q R 64 + 8 [k]\n8,0 1 3 0.2 0 C W 0 + 16 [0]\n",
    ),
    ("msr", b"128166372003061629,usr,0,Read,512,1024,41286\n128166372003061700,usr,0,Write,512,512,0\n"),
];

fn samples() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    ftlab_trace::samples().chain(COMPLETED)
}

fn options() -> impl Strategy<Value = Options> {
    let modes = prop::sample::select(vec![OutOfRange::Error, OutOfRange::Wrap, OutOfRange::Compact]);
    (
        modes,
        prop::option::of(1u64..1000),
        0u64..3,
        1u64..4,
        0u64..100,
        prop::sample::select(vec![1.0, 2.0, 0.3]),
        prop::sample::select(vec![Completions::Ignored, Completions::Kept, Completions::Needed]),
    )
        .prop_map(|(out_of_range, pages, skip_bad, repeat, dedup_ns, speed, completions)| Options {
            out_of_range,
            capacity_bytes: pages.map(|pages| pages * 4096),
            skip_bad,
            repeat,
            dedup_ns,
            speed,
            max_gap_ns: (dedup_ns % 2 == 0).then_some(1000),
            closed: true,
            completions,
            ..Options::default()
        })
}

#[derive(Clone, Debug)]
enum Edit {
    Replace(usize, u8),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let pieces = [
        "18446744073709551615",
        "99999999999999999999999",
        "-1",
        "-",
        ".",
        "1e99",
        ",",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\0",
        "é",
        "\"",
        "+",
    ];
    let piece = prop::sample::select(pieces.map(|piece| piece.as_bytes().to_vec()).to_vec());
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (any::<usize>(), prop::sample::select(b"0123456789,. -+RWDFQC\n".to_vec()))
            .prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (any::<usize>(), piece).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (any::<usize>(), 1usize..12).prop_map(|(at, n)| Edit::Remove(at, n)),
        (any::<usize>(), 1usize..60).prop_map(|(at, n)| Edit::Repeat(at, n)),
    ]
}

fn apply(mut text: Vec<u8>, edits: Vec<Edit>) -> Vec<u8> {
    for edit in edits {
        let length = text.len().max(1);
        match edit {
            Edit::Replace(at, byte) => {
                if let Some(place) = text.get_mut(at % length) {
                    *place = byte;
                }
            }
            Edit::Insert(at, piece) => {
                let at = at % length.min(text.len() + 1);
                text.splice(at..at, piece);
            }
            Edit::Remove(at, count) => {
                let at = (at % length).min(text.len());
                text.drain(at..(at + count).min(text.len()));
            }
            Edit::Repeat(at, count) => {
                let at = (at % length).min(text.len());
                let piece = text[at..(at + count).min(text.len())].to_vec();
                text.splice(at..at, piece);
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(common::cases(1500))]

    #[test]
    fn mutated_lines(
        seed in prop::sample::select(samples().collect::<Vec<_>>()),
        edits in prop::collection::vec(edit(), 0..6),
        mut options in options(),
        named in any::<bool>(),
    ) {
        if named {
            options.format = seed.0.into();
        }
        all_of(&apply(seed.1.to_vec(), edits), &options)?;
    }

    #[test]
    fn random_bytes(
        format in prop::sample::select(samples().map(|seed| seed.0).chain(["auto"]).collect::<Vec<_>>()),
        content in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            prop::collection::vec(prop::sample::select(b"0123456789,. \t\n-+eRWDFQCabx".to_vec()), 0..300),
        ],
        options in options(),
    ) {
        all_of(&content, &Options { format: format.into(), ..options })?;
    }

    #[test]
    fn random_bytes_behind_each_magic(
        magic in prop::sample::select(vec![
            b"\x1f\x8b\x08\0\0\0\0\0\0\0".to_vec(), b"\x28\xb5\x2f\xfd".to_vec(), b"\xfd7zXZ\0".to_vec(),
            b"BZh9\x31\x41\x59\x26\x53\x59".to_vec(), b"\x50\x2a\x4d\x18".to_vec(), b"PAR1".to_vec(),
            b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\0\x21\x01\x16\0\0\0".to_vec(),
        ]),
        content in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        all_of(&[magic, content].concat(), &Options::default())?;
    }
}

/// Every layout's sample can be read: a fuzz test in which all lines fail would find nothing.
#[test]
fn samples_parse() {
    for (format, content) in samples() {
        let options = Options { ..common::with(format) };
        assert!(!common::read(content, &options).unwrap().0.is_empty(), "{format}");
    }
}
