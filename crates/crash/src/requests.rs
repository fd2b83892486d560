//! Requests that are hard on recovery, for a configuration without a workload.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use ftlab_core::settings::Settings;
use ftlab_core::util::{below, stream};
use ftlab_core::workload::{Op, Record, Source, SourceError};

/// Upper bound on the logical pages of a request.
const LARGEST: u64 = 8;

/// Writes, trims, reads and flushes without end, in shares of 65, 15, 12 and 8 percent. Two thirds of the requests go
/// to a fifth of the space; requests arrive in bursts or one by one.
#[derive(Clone, Debug)]
pub struct Requests {
    random: Xoshiro256PlusPlus,
    page: u64,
    pages: u64,
    gap_ns: u64,
    time_ns: u64,
    made: u64,
    /// Draws which writes have FUA, independently of everything else.
    fua: Option<Xoshiro256PlusPlus>,
}

impl Requests {
    /// Makes the requests for the device of `settings`.
    pub fn new(settings: &Settings, seed: u64) -> Requests {
        Requests {
            random: stream(seed, "crash requests"),
            page: u64::from(settings.ftl.logical_page_bytes),
            pages: settings.user_pages(),
            gap_ns: 2 * (settings.flash.program.most() + settings.flash.read.most()),
            time_ns: 0,
            made: 0,
            fua: None,
        }
    }

    /// Gives FUA to one write in eight; nothing else changes.
    pub fn with_fua(self, seed: u64) -> Requests {
        Requests { fua: Some(stream(seed, "crash fua")), ..self }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(self.random.next_u64(), bound)
    }
}

impl Source for Requests {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        self.made += 1;
        if self.draw(2) == 0 {
            self.time_ns += self.draw(4 * self.gap_ns + 1);
        }
        let op = match self.draw(100) {
            0..65 => Op::Write,
            65..80 => Op::Trim,
            80..92 => Op::Read,
            _ => Op::Flush,
        };
        let (time_ns, line) = (self.time_ns, self.made);
        if op == Op::Flush {
            return Ok(Some(Record { time_ns, op, line, ..Record::FLUSH }));
        }
        let region = if self.draw(3) < 2 { self.pages.div_ceil(5) } else { self.pages };
        let first = self.draw(region);
        let fua = self.fua.as_mut().filter(|_| op == Op::Write);
        let flags = fua.map_or(0, |fua| if below(fua.next_u64(), 8) == 0 { Record::FUA } else { 0 });
        let count = 1 + self.draw(LARGEST.min(self.pages - first));
        Ok(Some(Record {
            time_ns,
            op,
            offset: first * self.page,
            size: count * self.page,
            line,
            flags,
            ..Record::FLUSH
        }))
    }
}
