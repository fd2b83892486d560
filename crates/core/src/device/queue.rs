//! The device's queue: the requests that the device holds and that have not issued, and the chips they wait for.

use super::array::Array;
use super::sched::{Sched, Space};
use super::settings::Settings;
use crate::flash::Work;
use crate::ftl::Locate;
use crate::request::{Pages, Pool, Request, Window};
use crate::util::Divider;
use crate::workload::Op;

/// Requests that, on arrival at the device, needed a LUN that was busy or awaited by others (VIOS, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// The number of such requests by half: reads, then writes and trims.
    pub requests: [u64; 2],
}

/// How the LUNs that a request touches are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// The LUNs are consecutive.
    Window,
    /// The LUNs are found page by page.
    Each,
    /// Writes go where there is room, or round the LUNs of superblocks: only the place of existing data is known.
    Unknown,
}

/// The device's queue: its scheduler, and counts of the waiting requests.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub sched: Sched,
    /// Number of waiting requests, and number of flushes among them.
    requests: u32,
    flushes: u32,
    /// Number of requests waiting for each chip (NR of VIOS, eq. (2)).
    wanted: Vec<u32>,
    /// Whether a request's [`Work`] marks each LUN that further requests wait for.
    by_speed: bool,
    /// Number of consecutive logical pages on one LUN before static allocation goes on to the next.
    stripe: Divider,
    /// Whether a NAND page holds several logical pages.
    shares_pages: bool,
    touch: Touch,
    pub conflicts: Conflicts,
}

/// Returns the chips and the logical pages that a scheduler has to deal with.
fn space(settings: &Settings) -> Space {
    let channels = settings.spread().places().iter().map(|place| place.channel).collect();
    Space {
        channels,
        pages: settings.user_pages() as u32,
        allocation: settings.ftl.allocation,
        dynamic: settings.allocates_dynamically(),
    }
}

impl Waiting {
    /// Makes an empty queue.
    pub fn new(settings: &Settings) -> Waiting {
        let touch = if settings.allocates_late() {
            Touch::Unknown
        } else if crate::ftl::maps_blocks(settings) || settings.spread().in_turn() {
            Touch::Window
        } else {
            Touch::Each
        };
        Waiting {
            sched: Sched::new(&settings.device.scheduler, &settings.device.sched, &space(settings)),
            requests: 0,
            flushes: 0,
            wanted: vec![0; settings.flash.luns() as usize],
            by_speed: settings.allocates_by_speed(),
            stripe: Divider::new(crate::ftl::stripe(settings)),
            shares_pages: settings.flash.page_bytes > settings.ftl.logical_page_bytes,
            touch,
            conflicts: Conflicts::default(),
        }
    }

    fn chips(&self) -> u32 {
        self.wanted.len() as u32
    }

    /// Whether something in the queue waits for a LUN, or may wait for it: a flush waits for every LUN, and so does a
    /// request whose LUNs are known only when it issues.
    #[inline]
    pub fn wants(&self, chip: u32) -> bool {
        let unknown = self.shares_pages || self.touch == Touch::Unknown;
        self.flushes > 0 || (self.requests > 0 && unknown) || self.wanted[chip as usize] > 0
    }

    /// Takes a request into the queue.
    #[inline(always)] // for every request; behind a controller it is called elsewhere
    pub fn accept(&mut self, id: u32, pool: &mut Pool, array: &Array, ftl: &impl Locate) {
        self.requests += 1;
        let request = &mut pool[id];
        ftl.preload(request.pages.first);
        let window = self.window(request.pages, ftl);
        request.device.luns = window;
        let chips = self.chips();
        let mut conflict = false;
        let busy = array.busy();
        window.each(chips, |chip| {
            let wanted = &mut self.wanted[chip as usize];
            conflict |= *wanted > 0 || busy.get(chip);
            *wanted += 1;
        });
        if self.touch != Touch::Window {
            conflict = self.meets_others(request, array, ftl);
        }
        self.conflicts.requests[request.half() as usize] += u64::from(conflict);
        let mut touched = window;
        if request.op == Op::Flush {
            self.flushes += 1;
            touched = Window { first: 0, width: chips };
        }
        self.sched.admit(id, touched, pool);
    }

    /// Returns the LUNs of a request's pages under static allocation (VIOS, eq. (1)).
    #[inline]
    fn window(&self, pages: Pages, ftl: &impl Locate) -> Window {
        if self.touch != Touch::Window {
            return Window { first: 0, width: 0 };
        }
        if pages.pages == 1 {
            return Window { first: ftl.home_lun(pages.first), width: 1 };
        }
        self.window_of_several(pages, ftl)
    }

    #[inline(never)] // keeps the path of a single page short
    fn window_of_several(&self, pages: Pages, ftl: &impl Locate) -> Window {
        if pages.pages == 0 {
            return Window { first: 0, width: 0 };
        }
        let first = ftl.home_lun(pages.first);
        let last = pages.first + pages.pages - 1;
        let width = self.stripe.div(last) - self.stripe.div(pages.first) + 1;
        Window { first, width: width.min(self.chips()) }
    }

    /// Whether a request whose LUNs are not consecutive needs a LUN that is busy or awaited by others. Under dynamic
    /// allocation: whether a LUN that holds the request's data is busy or, for a write, whether all LUNs are.
    #[cold]
    fn meets_others(&mut self, request: &Request, array: &Array, ftl: &impl Locate) -> bool {
        let mut pages = request.pages.first..request.pages.first + request.pages.pages;
        if self.touch == Touch::Unknown {
            return match request.op {
                Op::Read => pages.any(|lpn| !array.is_idle(ftl.read_lun(lpn))),
                _ => !pages.is_empty() && array.busy().count() == self.wanted.len() as u64,
            };
        }
        let meets = |lpn| {
            let chip = ftl.home_lun(lpn);
            self.wanted[chip as usize] > 0 || !array.is_idle(chip)
        };
        let conflict = pages.clone().any(meets);
        pages.for_each(|lpn| self.wanted[ftl.home_lun(lpn) as usize] += 1);
        conflict
    }

    /// Notes that a request issues: it no longer waits for its LUNs.
    #[inline(always)] // for every request
    pub fn leave(&mut self, request: &Request, array: &Array, ftl: &impl Locate, work: &mut Work) {
        self.requests -= 1;
        if request.op == Op::Flush {
            self.flushes -= 1;
        }
        request.device.luns.each(self.chips(), |chip| {
            let wanted = &mut self.wanted[chip as usize];
            if self.by_speed && *wanted > 1 {
                work.hurry(chip);
            }
            *wanted -= 1;
        });
        if self.touch != Touch::Window {
            self.leave_others(request.pages, array, ftl, work);
        }
    }

    /// Does what [`Waiting::leave`] does, for a request whose LUNs are not consecutive.
    #[cold]
    fn leave_others(&mut self, pages: Pages, array: &Array, ftl: &impl Locate, work: &mut Work) {
        if self.touch == Touch::Unknown {
            return work.set_busy(array.busy());
        }
        for lpn in pages.first..pages.first + pages.pages {
            self.wanted[ftl.home_lun(lpn) as usize] -= 1;
        }
    }
}
