//! Tasks of the device's own: work that no request of the host asks for.
//!
//! What a task issues is a request in the pool, whose steps wait for chips and buses like any other's. Its completion
//! is reported to the device, never to the host: it appears in no count, latency or file of requests, and a timeline
//! shows its steps without a request. At the end of each instant the tasks are called, in the order of the registry,
//! to begin what there is to do. Nothing begins once the last request of the workload has completed.
//!
//! To add one: a file here with `Keys` and a type that implements [`Task`], and one line in the registry below.

use std::fmt::Debug;

use super::settings::Settings;
use super::{Device, Turn};
use crate::clock::NEVER;
use crate::flash::Work;
use crate::ftl::{Ftl, Locate, Serve};
use crate::request::{Pages, Request};
use crate::util::Stat;
use crate::workload::Op;

/// A task of the device's own. What it knows is not part of saved states, and does not survive a power cut.
trait Task: Debug + Send {
    /// Makes the task, if these settings switch it on.
    fn new(settings: &Settings) -> Option<Self>
    where
        Self: Sized;

    /// Whether the task's requests count as held by the device, and keep all others out until they have ended.
    fn occupies(&self) -> bool {
        false
    }

    /// Whether the task may do anything now, or would change what it knows; asked before it is called.
    fn acts(&self, _device: &Device) -> bool {
        true
    }

    /// Begins the work that is to be done now; returns when to call the task again even if nothing else happens, or
    /// [`NEVER`].
    fn begin(&mut self, moment: &mut Moment) -> u64;

    /// Called when a request of the task has ended.
    fn ended(&mut self, _request: &Request) {}

    /// Returns the task's own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }
}

/// The device at the end of an instant, as a task sees it.
struct Moment<'a> {
    turn: Turn<'a, Ftl>,
    /// Whether no request of the host is due now, and more may come.
    lull: bool,
    device: &'a mut Device,
    task: u8,
    occupies: bool,
    /// Whether the task has done anything.
    acted: bool,
}

impl Moment<'_> {
    /// Whether this LUN is the first of those whose blocks are collected together, and `rests` holds for all of them.
    fn rest_together(&self, lun: u32, rests: impl Fn(&Device, u32) -> bool) -> bool {
        let mut luns = self.turn.ftl.reclaimed_with(lun);
        luns.start == lun && luns.all(|lun| rests(self.device, lun))
    }

    /// Issues the steps that `emit` emits as one request; `emit` returns false if there is nothing to do.
    /// With [`Op::Read`] the steps overtake and interrupt others as the steps of the host's reads do.
    fn issue(&mut self, op: Op, emit: impl FnOnce(&mut Ftl, &mut Work) -> bool) {
        self.issue_for((0, Pages::NONE), op, emit);
    }

    /// Does what [`Moment::issue`] does, for a request with this number and these pages; returns whether steps were
    /// emitted.
    fn issue_for(
        &mut self,
        (number, pages): (u64, Pages),
        op: Op,
        emit: impl FnOnce(&mut Ftl, &mut Work) -> bool,
    ) -> bool {
        let Moment { turn, device, task, occupies, .. } = self;
        let Turn { now_ns, pool, ftl, work, .. } = turn;
        self.acted = true;
        work.clear();
        let emitted = work.unfolded(|work| emit(ftl, work));
        let stream = (pages.pages > 0).then_some(pages.stream);
        device.watch.works(stream, work, *now_ns);
        let failed = work.take_failure();
        if emitted && ftl.is_read_only() {
            device.turned_read_only(*now_ns, *ftl);
        }
        let runs = emitted && !work.steps().is_empty();
        if runs {
            let mut request = Request::new(number, *now_ns, op, 0, 0, pages);
            (request.task, request.failed) = (*task, failed);
            device.own += 1;
            device.occupied += u32::from(*occupies);
            let id = pool.insert(request);
            device.launch(id, stream, 0, turn);
        }
        runs
    }
}

impl Tasks {
    /// Whether there are any tasks.
    pub fn any(&self) -> bool {
        self.any
    }

    /// Returns when, after now, the tasks are to be called even if nothing else happens, or [`NEVER`].
    pub fn alarm_ns(&self, now_ns: u64) -> u64 {
        if self.alarm_ns > now_ns { self.alarm_ns } else { NEVER }
    }
}

impl Device {
    /// Whether a task is to be called at the end of an instant.
    pub fn acts(&self) -> bool {
        self.tasks.act(self)
    }

    /// Lets tasks begin work at the end of an instant; returns whether they did anything. `lull` says that no request
    /// of the host is due, and more may come.
    pub fn begin_own(&mut self, turn: Turn<Ftl>, lull: bool) -> bool {
        let mut tasks = std::mem::take(&mut self.tasks);
        turn.work.set_now(turn.now_ns);
        let mut moment = Moment { turn, lull, device: self, task: 0, occupies: false, acted: false };
        let any = tasks.begin(&mut moment);
        self.tasks = tasks;
        any
    }
}

impl Moment<'_> {
    /// Lets a task begin what there is to do; returns when to call it again, and whether it did anything.
    fn begin(&mut self, number: u8, task: &mut impl Task) -> (u64, bool) {
        (self.task, self.occupies) = (number, task.occupies());
        let alarm_ns = task.begin(self);
        let acted = std::mem::take(&mut self.acted);
        if acted {
            self.device.array.settle(self.turn.now_ns);
            self.device.array.stir();
        }
        (alarm_ns, acted)
    }
}

/// Makes the list from one line per task: `module::Type;`.
macro_rules! registry {
    ($($module:ident :: $type:ident;)*) => {
        $(mod $module;)*

        $crate::section! {
            /// Keys of each task.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Keys {
                $(#[doc = "Keys of the one of this name."] $module: $module::Keys;)*
            }
        }

        /// The tasks that are switched on. They are called directly, as they are asked at every instant.
        #[derive(Debug)]
        pub struct Tasks {
            $($module: Option<$module::$type>,)*
            any: bool,
            alarm_ns: u64,
        }

        /// Numbers of the tasks.
        #[repr(u8)]
        enum Number {
            /// Stands for the host.
            _Host,
            $($type,)*
        }

        impl Default for Tasks {
            fn default() -> Tasks {
                Tasks { $($module: None,)* any: false, alarm_ns: NEVER }
            }
        }

        impl Tasks {
            /// Makes the tasks that these settings switch on.
            pub(super) fn new(settings: &Settings) -> Tasks {
                let mut tasks = Tasks { $($module: Task::new(settings),)* ..Tasks::default() };
                tasks.any = $(tasks.$module.is_some())||*;
                tasks
            }

            /// Whether a task is to be called at the end of an instant.
            fn act(&self, device: &Device) -> bool {
                $(self.$module.as_ref().is_some_and(|task| task.acts(device)))||*
            }

            /// Lets all tasks begin what there is to do; returns whether they did anything.
            fn begin(&mut self, moment: &mut Moment) -> bool {
                let mut any = false;
                self.alarm_ns = NEVER;
                $(if let Some(task) = &mut self.$module {
                    let (alarm_ns, acted) = moment.begin(Number::$type as u8, task);
                    self.alarm_ns = self.alarm_ns.min(alarm_ns);
                    any |= acted;
                })*
                any
            }

            /// Ends a request of a task; returns whether the request kept others out.
            pub(super) fn ended(&mut self, request: &Request) -> bool {
                $(if let (true, Some(task)) = (request.task == Number::$type as u8, &mut self.$module) {
                    task.ended(request);
                    return task.occupies();
                })*
                false
            }

            /// Returns the tasks' own figures, with the name of each task.
            pub fn stats(&self) -> impl Iterator<Item = (&'static str, Vec<Stat>)> {
                let stats = [$(self.$module.as_ref().map(|task| (stringify!($module), task.stats())),)*];
                stats.into_iter().flatten()
            }
        }
    };
}

registry! {
    destage::Destage;
    read_ahead::ReadAhead;
    write_back::WriteBack;
    collect::Collect;
    fold::Fold;
    refresh::Refresh;
}
