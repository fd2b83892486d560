//! Reads `[workload]` and its tables.

use super::typed::Reader;
use super::{Arrival, OutOfRange, Pattern, Replay, SizeMix, Synthetic, Value, Workload};

impl Reader<'_> {
    pub(super) fn workload(&self) -> Workload {
        let synthetic = self.whole("workload.synthetic.requests").map(|requests| Synthetic {
            requests,
            pattern: self.pattern(),
            sequential_ppm: self.u64("workload.synthetic.sequential_share"),
            read_ppm: self.u64("workload.synthetic.read_share"),
            trim_ppm: self.u64("workload.synthetic.trim_share"),
            exact_mix: self.flag("workload.synthetic.exact_mix"),
            read_sizes: self.sizes("workload.synthetic.read_sizes"),
            write_sizes: self.sizes("workload.synthetic.write_sizes"),
            align: self.whole("workload.synthetic.align"),
            region: self.whole("workload.synthetic.region"),
            arrival: self.arrival(),
            interarrival_ns: self.u64("workload.synthetic.interarrival"),
        });
        Workload {
            trace: self.text("workload.trace"),
            format: self.name("workload.format"),
            dedup_ns: self.u64("workload.dedup"),
            max_gap_ns: self.whole("workload.max_gap"),
            skip_bad: self.u64("workload.skip_bad"),
            repeat: self.u64("workload.repeat"),
            out_of_range: match self.name("workload.out_of_range").as_str() {
                "wrap" => OutOfRange::Wrap,
                "compact" => OutOfRange::Compact,
                _ => OutOfRange::Error,
            },
            replay: match self.name("workload.replay").as_str() {
                "closed" => Replay::Closed,
                _ => Replay::Open,
            },
            speed: self.number("workload.speed"),
            fio_time_unit_ns: self.whole("workload.fio_time_unit"),
            synthetic,
            benchmark: self.benchmark(),
            fio_job: self.text("workload.fio_job"),
        }
    }

    fn pattern(&self) -> Pattern {
        match self.name("workload.synthetic.pattern").as_str() {
            "sequential" => Pattern::Sequential,
            "zipf" => Pattern::Zipf { theta: self.number("workload.synthetic.zipf_theta") },
            "hot-cold" => Pattern::HotCold {
                share_ppm: self.u64("workload.synthetic.hot_share"),
                region_ppm: self.u64("workload.synthetic.hot_region"),
            },
            _ => Pattern::Random,
        }
    }

    fn arrival(&self) -> Arrival {
        let length = self.number("workload.synthetic.burst_length");
        let read_length = "workload.synthetic.read_burst_length";
        match self.name("workload.synthetic.arrival").as_str() {
            "constant" => Arrival::Constant,
            "bursts" => Arrival::Bursts {
                length,
                read_length: match self.0.get(read_length) {
                    Some(Value::Word(_)) => length,
                    _ => self.number(read_length),
                },
                gap_ns: self.u64("workload.synthetic.burst_gap"),
                single: self.name("workload.synthetic.burst_ops") == "single",
            },
            _ => Arrival::Exponential,
        }
    }

    /// The sizes of a key; those of `workload.synthetic.size` where it says so.
    fn sizes(&self, key: &str) -> SizeMix {
        match self.0.get(key) {
            Some(Value::SizeMix(mix)) => mix.clone(),
            _ => SizeMix::single(self.u64("workload.synthetic.size")),
        }
    }
}
