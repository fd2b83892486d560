//! What the device measures, for Prometheus: each query is answered with the text that Prometheus' client library
//! makes of the report.

use std::collections::HashSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ftlab_core::metrics::{Histogram, Report};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::engine::{Live, OPERATIONS};
use crate::shared::Shared;

/// How long a client may take to send its query, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Types of the two formats of the text: of OpenMetrics, and Prometheus' own.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Bytes of the longest query.
const MOST_BYTES: u64 = 16 << 10;
/// Exponents of the buckets' upper bounds, which are powers of two, in ns, like those of the histograms' bins: from 1
/// us to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=34;

/// Everything to be reported at one moment.
#[derive(Debug)]
pub struct Scrape {
    /// The result up to now.
    pub report: Report,
    /// The live device's own figures.
    pub live: Live,
    /// For each operation, the simulated times from arrival to completion, ns; and how late replies were sent, ns of
    /// wall time.
    pub histograms: (Vec<Histogram>, Histogram),
    /// Number of clients connected now, and number of clients served so far.
    pub connections: (u64, u64),
}

impl Scrape {
    /// Collects everything to be reported at this moment.
    pub fn of(shared: &Shared) -> Scrape {
        let histograms = shared.engine().histograms();
        let (report, live) = shared.report();
        let open = shared.clients().len() as u64;
        Scrape { report, live, histograms, connections: (open, shared.connections.load(Ordering::Relaxed)) }
    }

    /// Returns the text in the OpenMetrics format.
    ///
    /// # Errors
    /// Never: a string accepts everything.
    pub fn text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("ftlab");
        registry.register_collector(Box::new(self));
        let mut out = String::new();
        text::encode(&mut out, &registry)?;
        Ok(out)
    }
}

fn ratio() -> Unit {
    Unit::Other("ratio".into())
}

/// Labels of one value.
type MetricLabels<'a> = [(&'a str, &'a str)];

/// Writes one metric after another.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    /// Writes a counter: its values, each with its labels.
    fn counter<'v, V: EncodeCounterValue>(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        values: impl IntoIterator<Item = (&'v MetricLabels<'v>, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, V, f64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes a gauge: its values, each with its labels.
    fn gauge<'v, V: EncodeGaugeValue>(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        values: impl IntoIterator<Item = (&'v MetricLabels<'v>, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Writes a histogram of times: its distributions, each with its labels.
    fn times<'v>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (&'v MetricLabels<'v>, &'v Histogram)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (labels, histogram) in values {
            let buckets = buckets(histogram);
            let sum = histogram.sum() as f64 / 1e9;
            let mut one = metric.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets, None)?;
        }
        Ok(())
    }
}

/// Returns the upper bound in seconds and the count of each bucket.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let mut bins = histogram.bins().peekable();
    let bound = |power| (1u64 << power, (1u64 << power) as f64 / 1e9);
    BOUNDS
        .map(bound)
        .chain([(u64::MAX, f64::INFINITY)])
        .map(|(below_ns, bound)| {
            let mut count = 0;
            while let Some((_, many)) = bins.next_if(|&(from_ns, _)| from_ns < below_ns) {
                count += many;
            }
            (bound, count)
        })
        .collect()
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        self.requests(&mut page)?;
        self.flash(&mut page)?;
        self.health(&mut page)?;
        self.energy(&mut page)?;
        self.own(&mut page)?;
        self.server(&mut page)
    }
}

impl Scrape {
    fn requests(&self, page: &mut Page) -> fmt::Result {
        let Scrape { report, live, histograms: (latency, _), .. } = self;
        let operations = OPERATIONS.map(|name| [("operation", name)]);
        let latency = operations.iter().zip(latency).map(|(labels, times)| (&labels[..], times));
        page.times(("latency", "Simulated time from a request's arrival to its completion"), latency)?;
        let bytes = [report.trace.bytes_read, report.trace.bytes_written];
        let bytes = operations.iter().zip(bytes).map(|(labels, bytes)| (&labels[..], bytes));
        page.counter(("host", "Data of the requests", Some(Unit::Bytes)), bytes)?;
        let failed = &report.health.failed;
        let failed = [failed.reads.unwrap_or(0), failed.writes, failed.trims, failed.flushes];
        let failed = operations.iter().zip(failed).map(|(labels, count)| (&labels[..], count));
        let failed = failed.skip(usize::from(report.health.failed.reads.is_none()));
        page.counter(
            ("failed_requests", "Requests that a worn-out device refused, or could not read", None),
            failed,
        )?;
        let queues = [("host", live.queues[0]), ("device", live.queues[1])];
        let queues = queues.map(|(name, length)| ([("queue", name)], length));
        let queues = queues.iter().map(|(labels, length)| (&labels[..], *length));
        page.gauge(
            ("queue_requests", "Requests that wait in the host, and that the device holds", None),
            queues,
        )
    }

    fn flash(&self, page: &mut Page) -> fmt::Result {
        let Scrape { report, live, .. } = self;
        let flash = &report.flash;
        let all = [("read", &flash.reads), ("program", &flash.programs), ("erase", &flash.erases)];
        let counted = |(operation, counts): (&'static str, _)| {
            let counts: &ftlab_core::flash::ByCause<u64> = counts;
            let named = counts.named().into_iter();
            named.map(move |(cause, &count)| ([("operation", operation), ("cause", cause)], count))
        };
        let operations: Vec<_> = all.into_iter().flat_map(counted).collect();
        let operations = operations.iter().map(|(labels, count)| (&labels[..], *count));
        page.counter(("flash_operations", "Page reads, page programs and block erases", None), operations)?;
        let named = flash.busy_ns.named().into_iter();
        let busy: Vec<_> = named.map(|(cause, &ns)| ([("cause", cause)], ns as f64 / 1e9)).collect();
        let busy = busy.iter().map(|(labels, seconds)| (&labels[..], *seconds));
        page.counter(("flash_busy", "Time of cells and bus", Some(Unit::Seconds)), busy)?;
        let waf = &report.waf;
        let total = waf.total.unwrap_or(f64::NAN);
        let help = "Pages programmed for each page the host wrote";
        page.gauge(("overall_write_amplification", help, Some(ratio())), [(&[][..], total)])?;
        // The total is a metric of its own: as a sample of this one it would count every page twice.
        let shares = [("gc", waf.gc), ("map", waf.map), ("merge", waf.merge), ("pad", waf.pad)];
        let shares = shares.map(|(cause, share)| ([("cause", cause)], share.unwrap_or(f64::NAN)));
        let further = [("fold", waf.fold), ("refresh", waf.refresh)].into_iter();
        let further = further.filter_map(|(cause, share)| Some(([("cause", cause)], share?)));
        let shares: Vec<_> = shares.into_iter().chain(further).collect();
        let shares = shares.iter().map(|(labels, share)| (&labels[..], *share));
        let help = "Pages programmed for each page the host wrote, besides those with its data";
        page.gauge(("write_amplification", help, Some(ratio())), shares)?;
        let lookups = [("hit", report.mapping.hits), ("miss", report.mapping.misses)];
        let lookups = lookups.map(|(result, count)| ([("result", result)], count));
        let lookups = lookups.iter().map(|(labels, count)| (&labels[..], *count));
        page.counter(("mapping_lookups", "Translations, by whether the entry was cached", None), lookups)?;
        let hit_ratio = report.mapping.hit_ratio.unwrap_or(f64::NAN);
        let help = "Share of the translations that the mapping cache served by itself";
        page.gauge(("mapping_hit", help, Some(ratio())), [(&[][..], hit_ratio)])?;
        let help = "Erased blocks that can be written";
        page.gauge(("free_blocks", help, None), [(&[][..], live.free_blocks)])
    }

    /// Writes how worn the device is, as a drive reports it.
    fn health(&self, page: &mut Page) -> fmt::Result {
        let (health, smart) = (&self.report.health, &self.report.health.nvme_smart);
        let share = |percent: Option<u8>| percent.map_or(f64::NAN, |percent| f64::from(percent) / 100.0);
        let help = "Mean erase count of the blocks by flash.endurance";
        page.gauge(("life_used", help, Some(ratio())), [(&[][..], share(smart.percentage_used))])?;
        let help = "Spare blocks left, on the chip with the fewest";
        page.gauge(("spare", help, Some(ratio())), [(&[][..], share(smart.available_spare))])?;
        let read_only = u32::from(health.read_only_ns.is_some());
        page.gauge(("read_only", "Whether writes are refused", None), [(&[][..], read_only)])?;
        let errors = health.media_errors.unwrap_or(0);
        page.counter(("media_errors", "Page reads that could not be corrected", None), [(&[][..], errors)])
    }

    /// Writes where the energy went, if operations take energy.
    fn energy(&self, page: &mut Page) -> fmt::Result {
        let Some(energy) = &self.report.energy else { return Ok(()) };
        let joules = energy.parts().map(|(part, mj)| ([("part", part)], mj / 1e3));
        let joules = joules.iter().map(|(labels, joules)| (&labels[..], *joules));
        page.counter(("energy", "Energy, by what took it", Some(Unit::Joules)), joules)
    }

    /// Writes the additional figures that the parts of the simulator report themselves.
    fn own(&self, page: &mut Page) -> fmt::Result {
        let (own, legend) = (self.report.own.as_ref(), self.report.own_legend.iter().flatten());
        for line in legend {
            let value = own.and_then(|own| own[line.part][&line.name]).unwrap_or(f64::NAN);
            let name = format!("own_{}_{}", line.part, line.name);
            let plain = !line.unit.is_empty() && line.unit.bytes().all(|byte| byte.is_ascii_lowercase());
            let unit = plain.then(|| Unit::Other(line.unit.clone()));
            page.gauge((&name, &line.doc, unit), [(&[][..], value)])?;
        }
        Ok(())
    }

    fn server(&self, page: &mut Page) -> fmt::Result {
        let Scrape { live, histograms: (_, lateness), connections: (open, ever), .. } = self;
        let help = "How much later than due replies were handed over, wall time";
        page.times(("lateness", help), [(&[][..], lateness)])?;
        let now = live.now_ns as f64 / 1e9;
        page.counter(("simulated", "Simulated time", Some(Unit::Seconds)), [(&[][..], now)])?;
        page.gauge(("payload", "Data kept", Some(Unit::Bytes)), [(&[][..], live.payload_bytes)])?;
        page.gauge(("connections", "NBD clients connected", None), [(&[][..], *open)])?;
        page.counter(("accepted_connections", "NBD clients so far", None), [(&[][..], *ever)])
    }
}

/// Answers one query over HTTP.
pub fn serve(shared: &Shared, stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(MOST_BYTES)).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    let mut open = false;
    // The rest of the head must be read as well, or the answer might be lost.
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        open |= wants_open_metrics(&line);
    }
    let text = || Scrape::of(shared).text().expect("a text takes everything");
    // A query after the path is ignored, as Prometheus' own exporters do.
    let words = asked.split(' ').map(|word| word.split('?').next().unwrap_or_default());
    let (status, kind, body) = match words.collect::<Vec<_>>()[..] {
        ["GET" | "HEAD", "/metrics", _] if open => ("200 OK", OPEN_METRICS, text()),
        ["GET" | "HEAD", "/metrics", _] => ("200 OK", PLAIN, plain(&text())),
        ["GET" | "HEAD", ..] => ("404 Not Found", "text/plain", "it is /metrics\n".into()),
        _ => ("405 Method Not Allowed", "text/plain", "GET or HEAD /metrics\n".into()),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Vary: Accept\r\n\
         Connection: close\r\n\r\n{}",
        body.len(),
        // A HEAD is answered as a GET, without the text.
        if asked.starts_with("HEAD ") { "" } else { &body }
    )
}

/// Whether a line of the query's head asks for the OpenMetrics format; all others get the older one. A weight of 0
/// means that the format is not acceptable (RFC 9110, 12.4.2).
fn wants_open_metrics(line: &str) -> bool {
    let Some((name, kinds)) = line.split_once(':') else { return false };
    let refused = |parameter: &str| {
        let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        weight.is_some_and(|(_, weight)| weight.trim().parse() == Ok(0.0))
    };
    let asks = |kind: &str| {
        let mut parts = kind.split(';');
        let kind = parts.next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/openmetrics-text") && !parts.any(refused)
    };
    name.eq_ignore_ascii_case("accept") && kinds.split(',').any(asks)
}

/// Returns the text in Prometheus' own format: there are no units and no end, and a counter is described under the name
/// that its samples have.
fn plain(open_metrics: &str) -> String {
    let counters: HashSet<&str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|kind| {
            let (name, rest) = line.strip_prefix(kind)?.split_once(' ')?;
            counters.contains(name).then(|| format!("{kind}{name}_total {rest}"))
        });
        out.push_str(described.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value is below the bound of its bucket, and every value is in some bucket.
    #[test]
    fn buckets_hold_all_values() {
        let mut histogram = Histogram::default();
        for ns in [0, 1023, 1024, 5000, 1 << 33, (1 << 34) - 1, 1 << 34, u64::MAX / 2] {
            histogram.add(ns);
        }
        let buckets = buckets(&histogram);
        assert_eq!(buckets[0], (1.024e-6, 2));
        assert_eq!(buckets[1], (2.048e-6, 1));
        assert_eq!(buckets[BOUNDS.count() - 1].1, 2);
        assert_eq!(buckets[BOUNDS.count()], (f64::INFINITY, 2));
        assert_eq!(buckets.iter().map(|bucket| bucket.1).sum::<u64>(), 8);
    }

    #[test]
    fn a_format_is_asked_for() {
        assert!(wants_open_metrics(
            "Accept: text/html, application/OpenMetrics-text;version=1.0.0;q=0.5,*/*"
        ));
        assert!(wants_open_metrics("accept:application/openmetrics-text"));
        for other in [
            "Accept: */*",
            "Accept: text/plain;version=0.0.4",
            "X-Accept: application/openmetrics-text",
            "Accept: application/openmetrics-text;version=1.0.0;q=0",
            "Accept: application/openmetrics-text; Q=0.000, text/plain",
            "",
        ] {
            assert!(!wants_open_metrics(other), "{other}");
        }
    }

    /// In Prometheus' own format a counter has one name, and only comments differ otherwise.
    #[test]
    fn counters_have_one_name() {
        let open = "# HELP a_seconds A.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total{b=\"c d\"} 1\n\
                    # HELP a_seconds_b B.\n# TYPE a_seconds_b gauge\na_seconds_b 2\n# EOF\n";
        let own = "# HELP a_seconds_total A.\n# TYPE a_seconds_total counter\na_seconds_total{b=\"c d\"} 1\n\
                   # HELP a_seconds_b B.\n# TYPE a_seconds_b gauge\na_seconds_b 2\n";
        assert_eq!(plain(open), own);
    }
}
