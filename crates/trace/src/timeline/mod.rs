//! The timeline of a run, in a format that <https://ui.perfetto.dev> opens.
//!
//! Under `host` there is a slice for each request, from arrival to completion, with its `wait` and `access` inside;
//! under `device`, the link and the cores have their tracks, the write buffer a count of its pages, and each channel
//! has its `bus` and its chips, with a slice for every flash operation's cells and for every transfer of data. An arrow
//! leads from a request through the work that the link and the cores do for it, and through its flash operations.
//! Tenants have tracks of their own for their requests, and their name in that of every slice that runs for them.

mod encoder;
mod lanes;
mod names;
mod numbers;
mod perfetto;
mod window;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::atomic::{OutputError, OutputFile};
use encoder::Message;
use ftlab_core::device::{Service, Stage};
use ftlab_core::sim::{Activity, Completion, Dispatch, Handling, Tracks};
use lanes::Senders;
use names::{Arg, Category, Name};
use perfetto::{Args, Track};
pub use window::Window;

/// Number of events (slices and counter changes) after which a timeline without a window stops.
pub const MOST_EVENTS: u64 = 1_000_000;

/// Upper bound on the number of requests that are drawn next to each other from their arrival on; if more wait at a
/// time, the others are drawn from their dispatch on.
const MOST_LANES: u64 = 1024;

const HOST: u64 = 1;
const DEVICE: u64 = 2;
const PENDING: u64 = 3;
const CONTROLLER: u64 = 4;
const BUFFER: u64 = 5;
const FIRST: u64 = 16;

/// What a finished timeline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Number of slices and counter changes.
    pub events: u64,
    /// Time at which the timeline stopped because it had reached its limit, ns; `None` if it had not.
    pub cut_ns: Option<u64>,
}

/// A request with open slices.
#[derive(Clone, Copy, Debug)]
struct Open {
    stream: u16,
    lane: u64,
    slices: u32,
}

/// Writes a timeline during a run. Memory depends on the outstanding requests, never on the length of the run. The
/// file appears when [`Timeline::finish`] is called.
#[derive(Debug)]
pub struct Timeline {
    path: PathBuf,
    out: Option<OutputFile>,
    error: Option<OutputError>,
    message: Message,
    tracks: Tracks,
    window: Window,
    most: u64,
    drawn: Drawn,
    senders: Senders,
    /// Requests that are drawn and have not completed.
    open: BTreeMap<u64, Open>,
    pending: Option<u32>,
    /// Pages in use of the write buffer.
    buffer: Option<u32>,
}

impl Timeline {
    /// Starts the file `path` for a device with these tracks. Without a window, the timeline ends after about `most`
    /// events.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(
        path: &Path,
        tracks: Tracks,
        window: Option<Window>,
        most: u64,
    ) -> Result<Timeline, OutputError> {
        let senders = Senders::new(tracks.tenants.clone());
        let mut timeline = Timeline {
            path: path.to_owned(),
            out: Some(OutputFile::create(path)?),
            error: None,
            message: Message::default(),
            tracks,
            window: window.unwrap_or_default(),
            most: if window.is_some() { u64::MAX } else { most },
            drawn: Drawn { events: 0, cut_ns: None },
            senders,
            open: BTreeMap::new(),
            pending: None,
            buffer: None,
        };
        timeline.announce();
        Ok(timeline)
    }

    /// Completes the file and puts it in its place; returns what the file holds.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> Result<Drawn, OutputError> {
        self.write();
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(out) = self.out.take() {
            out.finish()?;
        }
        Ok(self.drawn)
    }

    /// Whether the file could not be written, so that the run need not continue.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Draws the work of a chip or a bus.
    pub fn activity(&mut self, activity: &Activity) {
        let Activity { lun, channel, stage, begin_ns, end_ns, .. } = *activity;
        self.bound(end_ns);
        if let Some(request) = &activity.request {
            self.begin_request(request, end_ns);
        }
        let Some((from_ns, to_ns)) = self.window.clip(begin_ns, end_ns) else { return self.write() };
        let whole_ns = (from_ns, to_ns) != (begin_ns, end_ns);
        let whole_ns = whole_ns.then_some(end_ns - begin_ns);
        let (name, category) = match stage {
            Stage::In => (Name::DataIn, Category::Bus),
            Stage::Out => (Name::DataOut, Category::Bus),
            Stage::Cells => {
                (Name::Cells(activity.operation, activity.cause), Category::Cells(activity.operation))
            }
        };
        let tenant = activity.request.map_or(String::new(), |request| self.senders.name_for(&request));
        let on_bus = (stage != Stage::Cells).then(|| self.bus_track(u64::from(channel)));
        for track in [Some(self.lun_track(u64::from(lun), stage)), on_bus].into_iter().flatten() {
            self.drawn.events += 1;
            perfetto::begin(&mut self.message, from_ns, track, (name, category, &tenant), |args| {
                describe(activity, args);
                if stage == Stage::Cells
                    && let Some(request) = &activity.request
                {
                    args.flow(request.id);
                }
                if let Some(ns) = whole_ns {
                    args.uint(Arg::WholeNs, ns);
                }
            });
            perfetto::end(&mut self.message, to_ns, track, |_| ());
        }
        self.write();
    }

    /// Draws what the link or a core did for a request.
    pub fn handled(&mut self, handling: &Handling) {
        let Handling { server, service, ref request, begin_ns, end_ns } = *handling;
        self.bound(end_ns);
        self.begin_request(request, end_ns);
        let Some((from_ns, to_ns)) = self.window.clip(begin_ns, end_ns) else { return self.write() };
        let (name, category) = match service {
            Service::Command => (Name::Command, Category::Link),
            Service::Work => (Name::Work, Category::Core),
            Service::DataIn => (Name::DataIn, Category::Link),
            Service::DataOut => (Name::DataOut, Category::Link),
            Service::Answer => (Name::Answer, Category::Link),
        };
        let tenant = self.senders.name_for(request);
        let track = self.server_track(u64::from(server));
        self.drawn.events += 1;
        perfetto::begin(&mut self.message, from_ns, track, (name, category, &tenant), |args| {
            args.uint(Arg::Request, request.id);
            args.op(request.op);
            args.flow(request.id);
            if (from_ns, to_ns) != (begin_ns, end_ns) {
                args.uint(Arg::WholeNs, end_ns - begin_ns);
            }
        });
        perfetto::end(&mut self.message, to_ns, track, |_| ());
        self.write();
    }

    /// Draws the completion of a request.
    pub fn complete(&mut self, completion: &Completion) {
        let c = completion;
        self.bound(c.complete_ns);
        // A request without flash operations has not been drawn yet.
        let unseen = Dispatch {
            id: c.id,
            arrival_ns: c.arrival_ns,
            dispatch_ns: c.dispatch_ns,
            op: c.op,
            offset: c.offset,
            size: c.size,
            lpn: 0,
            pages: 0,
            stream: c.stream,
        };
        self.begin_request(&unseen, c.complete_ns);
        if let Some(Open { stream, lane, slices }) = self.open.remove(&c.id) {
            let track = self.lane_track(stream, lane);
            let end_ns = c.complete_ns.clamp(self.window.start_ns, self.window.end_ns);
            for left in (0..slices).rev() {
                perfetto::end(&mut self.message, end_ns, track, |args| {
                    if left == 0 {
                        if c.failed {
                            args.uint(Arg::Failed, 1);
                        }
                        args.uint(Arg::LatencyNs, c.complete_ns - c.arrival_ns);
                        args.uint(Arg::MappingMisses, u64::from(c.mapping_misses));
                        if c.batch > 0 {
                            args.uint(Arg::Batch, c.batch);
                        }
                    }
                });
            }
            self.senders.lanes(stream).free(lane, end_ns);
        }
        self.write();
    }

    /// Notes that this many requests are in the pending queue from `now_ns` on.
    pub fn pending(&mut self, now_ns: u64, requests: u32) {
        if self.pending != Some(requests) && self.count(now_ns, PENDING, requests) {
            self.pending = Some(requests);
        }
    }

    /// Notes that this many pages of the write buffer are in use from `now_ns` on.
    pub fn buffer(&mut self, now_ns: u64, pages: u32) {
        if self.tracks.buffer && self.buffer != Some(pages) && self.count(now_ns, BUFFER, pages) {
            self.buffer = Some(pages);
        }
    }

    /// Draws the value that a counter has from `now_ns` on; returns false outside the window.
    fn count(&mut self, now_ns: u64, track: u64, value: u32) -> bool {
        let inside = self.window.clip(now_ns, now_ns).is_some();
        if inside {
            self.drawn.events += 1;
            perfetto::counter(&mut self.message, now_ns, track, u64::from(value));
            self.write();
        }
        inside
    }

    /// Ends the timeline at `now_ns` if it has reached its limit.
    fn bound(&mut self, now_ns: u64) {
        if self.drawn.events >= self.most && self.drawn.cut_ns.is_none() {
            self.drawn.cut_ns = Some(now_ns);
            self.window.end_ns = now_ns;
        }
    }

    /// Draws a request that is not drawn yet, starting at its arrival: its wait and, unless it was dispatched
    /// after the window, the beginning of its access. The request existed at least until `now_ns`.
    fn begin_request(&mut self, request: &Dispatch, now_ns: u64) {
        let Dispatch { id, arrival_ns, dispatch_ns, stream, .. } = *request;
        let inside = self.window.clip(arrival_ns, now_ns).is_some();
        if !inside || self.drawn.cut_ns.is_some() || self.open.contains_key(&id) {
            return;
        }
        let dispatched_ns = dispatch_ns.clamp(self.window.start_ns, self.window.end_ns);
        let arrived_ns = arrival_ns.max(self.window.start_ns);
        let lanes = self.senders.lanes(stream);
        let (lane, from_ns) = match lanes.take(arrived_ns, MOST_LANES) {
            Some(lane) => (lane, arrived_ns),
            None => (lanes.take(dispatched_ns, u64::MAX).expect("no bound"), dispatched_ns),
        };
        let (new, tenant) = (lanes.is_new(lane), self.senders.name(stream));
        let track = self.lane_track(stream, lane);
        if new {
            let (of, rank) = match self.tracks.tenants {
                Some(_) => (format!("requests of {tenant}"), 1 + u64::from(stream)),
                None => ("requests".into(), 1),
            };
            let requests = Track { uuid: track, parent: HOST, name: &of, rank, counter: false };
            perfetto::track(&mut self.message, &requests);
        }
        self.drawn.events += 2;
        let name = (Name::Request(request.op), Category::Request, tenant.as_str());
        perfetto::begin(&mut self.message, from_ns, track, name, |args| {
            args.uint(Arg::Request, id);
            args.uint(Arg::Offset, request.offset);
            args.uint(Arg::Size, request.size);
            args.uint(Arg::ArrivalNs, arrival_ns);
            args.uint(Arg::WaitNs, dispatch_ns - arrival_ns);
            if request.pages > 0 {
                args.uint(Arg::Lpn, u64::from(request.lpn));
                args.uint(Arg::Pages, u64::from(request.pages));
            }
        });
        let mut slices = 1;
        if dispatched_ns > from_ns {
            self.drawn.events += 1;
            perfetto::begin(&mut self.message, from_ns, track, (Name::Wait, Category::Request, ""), |_| ());
            perfetto::end(&mut self.message, dispatched_ns, track, |_| ());
        }
        if dispatch_ns < self.window.end_ns {
            let name = (Name::Access, Category::Request, "");
            perfetto::begin(&mut self.message, dispatched_ns, track, name, |args| args.flow(id));
            slices += 1;
        }
        self.open.insert(id, Open { stream, lane, slices });
    }

    /// Writes what every timeline begins with.
    fn announce(&mut self) {
        perfetto::names(&mut self.message, !self.tracks.controller.is_empty(), self.tracks.rare);
        let Tracks { controller, buffer, channels, luns, overlap, .. } = &self.tracks;
        let channels = u64::from(*channels);
        let mut add = |uuid, parent, name: &str, rank, counter| {
            perfetto::track(&mut self.message, &Track { uuid, parent, name, rank, counter });
        };
        add(HOST, 0, "host", 0, false);
        add(PENDING, HOST, "pending queue", 0, true);
        add(DEVICE, 0, "device", 1, false);
        if !controller.is_empty() {
            add(CONTROLLER, DEVICE, "controller", 0, false);
        }
        let above = u64::from(!controller.is_empty());
        if *buffer {
            add(BUFFER, DEVICE, "write buffer", above, true);
        }
        for (server, name) in (0..).zip(controller) {
            add(FIRST + 2 * channels + 2 * luns.len() as u64 + server, CONTROLLER, name, server, false);
        }
        for channel in 0..channels {
            let group = FIRST + channel;
            let rank = channel + above + u64::from(*buffer);
            add(group, DEVICE, &format!("channel {channel}"), rank, false);
            add(group + channels, group, "bus", 0, false);
        }
        for (lun, track) in (0..).zip(luns) {
            let parent = FIRST + u64::from(track.channel);
            let rank = 1 + 2 * u64::from(track.rank);
            let uuid = FIRST + 2 * channels + lun;
            add(uuid, parent, &track.name, rank, false);
            if *overlap {
                add(uuid + luns.len() as u64, parent, &format!("{} data", track.name), rank + 1, false);
            }
        }
        self.write();
    }

    /// Writes out what has been encoded.
    fn write(&mut self) {
        if let Some(out) = &mut self.out
            && let Err(error) = out.write_all(self.message.as_bytes())
        {
            self.error = Some(OutputError::new(&self.path, error));
            // Dropping the output also removes the file next to the target.
            self.out = None;
        }
        self.message.clear();
    }
}

fn describe(activity: &Activity, args: &mut Args) {
    if let Some(request) = &activity.request {
        args.uint(Arg::Request, request.id);
        args.op(request.op);
    }
    if let Some(lpn) = activity.lpn {
        args.uint(Arg::Lpn, u64::from(lpn));
    }
    args.cause(activity.cause);
    args.operation(activity.operation);
    if activity.stage != Stage::Cells {
        args.uint(Arg::Chip, u64::from(activity.chip));
    }
}

#[cfg(test)]
mod tests;
