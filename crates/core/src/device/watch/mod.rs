//! What watches the device without a part in it: probes, which are told about requests, RAM and the flash's work.
//!
//! Three hooks tell where a request goes ([`Probe::issues`], [`Probe::answers`], [`Probe::ram`]), one what the FTL does
//! for it ([`Probe::works`]), two how time passes ([`Probe::passes`], [`Probe::completes`]). A device without probes
//! asks once a request whether there are any. The figures of a probe are in the report under its name (`own`).
//!
//! To add one: a file here with `Keys` and a type that implements [`Probe`], and one line in the registry.

use super::buffer::Buffer;
use crate::flash::{Flash, Work};
use crate::ftl::Running;
use crate::request::{Entry, Pages, Request};
use crate::util::Stat;
pub use awake::Awake;
pub use ledger::{Ledger, Share};
pub use lookups::Lookups;
pub(super) use moves::Followed;
pub(super) use tape::Taped;

/// Pages of a request that go to the FTL, or that RAM answers.
pub(super) struct Issue<'a> {
    pub request: &'a Request,
    pub pages: Pages,
    /// The mapping entries that the request carries for these pages, or none.
    pub entries: &'a [Entry],
    /// The write buffer, if there is one.
    pub buffer: Option<&'a Buffer>,
    pub now_ns: u64,
}

/// What happens in the RAM of the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ram {
    /// The flush with this number comes.
    Flush { number: u64 },
    /// A page of the request with this number comes into the buffer; this slot holds the page on flash.
    Keep { number: u64, lpn: u32, slot: u32 },
    /// A page goes to the FTL.
    Destage { lpn: u32 },
    /// What the buffer holds of a page goes to the FTL with a write that goes past the buffer.
    Pass { lpn: u32 },
    /// A page is dropped.
    Drop { lpn: u32 },
}

/// A probe. It changes nothing.
pub(super) trait Probe: std::fmt::Debug + Send + Sized {
    /// Whether the probe is told what issues, is answered and comes into RAM.
    const ISSUES: bool = true;
    /// Whether the probe is told about the flash's work.
    const WORKS: bool = true;
    /// Whether the probe is told how time passes, and about completions.
    const TIME: bool = false;
    /// Whether the flash's work has to be one step for each operation.
    const APART: bool = false;

    /// Makes the probe, if its keys switch it on; others are put in by whoever reads them.
    fn new(_keys: &Keys, _flash: &Flash) -> Option<Self> {
        None
    }

    /// Notes that pages of a request go to the FTL.
    fn issues(&mut self, _issue: &Issue, _ftl: &impl Running) {}

    /// Notes that RAM answers pages of a read.
    fn answers(&mut self, _issue: &Issue, _ftl: &impl Running) {}

    /// Notes what happens in RAM.
    fn ram(&mut self, _what: Ram, _now_ns: u64) {}

    /// Notes what the FTL has just decided on for a request of this stream, or for none of the host's.
    fn works(&mut self, _stream: Option<u16>, _work: &Work, _now_ns: u64) {}

    /// Notes, at the beginning of an instant, that it is now later, and whether anything was under way in the device
    /// since the last call. The first request arrives at `first_ns`, if that is known.
    fn passes(&mut self, _now_ns: u64, _first_ns: Option<u64>, _under_way: bool) {}

    /// Notes that a request of the workload completes.
    fn completes(&mut self) {}

    /// Returns the probe's own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }
}

/// Makes the watch from one line for each probe: `module::Type;`.
macro_rules! registry {
    ($($name:ident :: $type:ident;)*) => {
        $(mod $name;)*

        $crate::section! {
            /// Keys of the probes.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Keys {
                $(#[doc = "Keys of the one of this name."] $name: $name::Keys;)*
            }
        }

        /// The probes that there are, which are called directly.
        #[derive(Debug)]
        pub(super) struct Watch {
            $(pub(super) $name: Option<Box<$name::$type>>,)*
        }

        impl Watch {
            /// Makes the probes that these keys switch on.
            pub(super) fn new(keys: &Keys, flash: &Flash) -> Watch {
                Watch { $($name: Probe::new(keys, flash).map(Box::new),)* }
            }

            /// Whether a probe is told what issues, is answered and comes into RAM.
            #[inline]
            pub(super) fn hears_issues(&self) -> bool {
                $(<$name::$type as Probe>::ISSUES && self.$name.is_some())||*
            }

            /// Whether a probe is told about the flash's work.
            pub(super) fn hears_works(&self) -> bool {
                $(<$name::$type as Probe>::WORKS && self.$name.is_some())||*
            }

            /// Whether a probe is told how time passes.
            pub(super) fn hears_time(&self) -> bool {
                $(self.$name.is_some() && <$name::$type as Probe>::TIME)||*
            }

            /// Whether a probe needs one step for each operation of the flash.
            pub(super) fn keeps_apart(&self) -> bool {
                $(self.$name.is_some() && <$name::$type as Probe>::APART)||*
            }

            pub(super) fn issues(&mut self, issue: &Issue, ftl: &impl Running) {
                $(if <$name::$type as Probe>::ISSUES && let Some(probe) = &mut self.$name {
                    probe.issues(issue, ftl);
                })*
            }

            pub(super) fn answers(&mut self, issue: &Issue, ftl: &impl Running) {
                $(if <$name::$type as Probe>::ISSUES && let Some(probe) = &mut self.$name {
                    probe.answers(issue, ftl);
                })*
            }

            #[inline]
            pub(super) fn ram(&mut self, what: Ram, now_ns: u64) {
                $(if <$name::$type as Probe>::ISSUES && let Some(probe) = &mut self.$name {
                    probe.ram(what, now_ns);
                })*
            }

            #[inline]
            pub(super) fn works(&mut self, stream: Option<u16>, work: &Work, now_ns: u64) {
                $(if <$name::$type as Probe>::WORKS && let Some(probe) = &mut self.$name {
                    probe.works(stream, work, now_ns);
                })*
            }

            pub(super) fn passes(&mut self, now_ns: u64, first_ns: Option<u64>, under_way: bool) {
                $(if <$name::$type as Probe>::TIME && let Some(probe) = &mut self.$name {
                    probe.passes(now_ns, first_ns, under_way);
                })*
            }

            pub(super) fn completes(&mut self) {
                $(if <$name::$type as Probe>::TIME && let Some(probe) = &mut self.$name {
                    probe.completes();
                })*
            }

            /// Returns the probes' own figures, with the name of each probe.
            pub(super) fn stats(&self) -> impl Iterator<Item = (&'static str, Vec<Stat>)> {
                let stats = [$(self.$name.as_ref().map(|probe| (stringify!($name), probe.stats())),)*];
                stats.into_iter().flatten()
            }
        }
    };
}

registry! {
    tape::Taped;
    moves::Followed;
    lookups::Lookups;
    ledger::Ledger;
    awake::Awake;
}
