//! The row of stages that a command goes through between the host and the queue: link, cores and write buffer.
//!
//! A command comes through the stages in the order of the registry below, and enters the queue behind the last one. It
//! goes back through them in the reverse order, from the queue or from the stage at which it turned round, and is
//! answered in front of the first. A stage says what becomes of a command ([`Next`]); the row keeps the times, in one
//! line, so that what is due at the same nanosecond is handled in the order in which it was found.
//!
//! Events due at the same nanosecond are handled in this order: first those of the flash, chip by chip; then those of
//! the row; last, arrivals of requests.
//!
//! To add one: a file here with `Keys` and a type that implements [`Stage`], and one line in the registry.

pub(super) mod hub;
mod line;

use super::array::Used;
use super::buffer::settings::{Around, Settings as OfBuffer};
use super::controller;
use super::turn::Turn;
use super::watch::Watch;
use crate::ftl::Running;
use crate::request::{Pool, Request};
use hub::Hub;
use line::{Line, To};

/// What becomes of a command at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The command goes on.
    On,
    /// The command goes on at this time, ns.
    Until(u64),
    /// The stage keeps the command, and releases it later ([`Stage::release`]).
    Stays,
    /// The command has come as far as it has to, and goes back.
    Back,
}

/// What stages are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    /// Keys of link and cores.
    pub controller: &'a controller::Settings,
    /// Keys of the write buffer.
    pub buffer: &'a OfBuffer,
    /// The device around the write buffer.
    pub around: Around,
}

/// A stage of the row.
pub(super) trait Stage: std::fmt::Debug + Send + Sized {
    /// Makes the stage, if the plan or the stage's own keys have it.
    fn new(plan: &Plan, keys: &Keys) -> Option<Self>;

    /// Takes a command on its way to the queue.
    fn come<F: Running>(
        &mut self,
        _id: u32,
        _hub: &mut Hub,
        _turn: &mut Turn<F>,
        _watch: &mut Watch,
    ) -> Next {
        Next::On
    }

    /// Takes a command on its way back to the host.
    fn back(&mut self, _id: u32, _hub: &mut Hub, _request: &Request, _now_ns: u64) -> Next {
        Next::On
    }

    /// Whether commands that the stage keeps may leave it now.
    fn is_due(&self) -> bool {
        false
    }

    /// Lets the stage look at the commands that it keeps; called if it is due.
    fn wake<F: Running>(&mut self, _turn: &mut Turn<F>, _watch: &mut Watch) {}

    /// Returns a command that leaves the stage now, and where to; called until there is none.
    fn release<F: Running>(&mut self, _turn: &mut Turn<F>, _watch: &mut Watch) -> Option<(u32, Next)> {
        None
    }

    /// Whether a task of the device's own may have something to do whenever a command has come.
    fn stirs(&self) -> bool {
        false
    }

    /// Refuses the commands that the stage keeps, as the device has turned read-only.
    fn close(&mut self) {}

    /// Forgets all commands, whose power is cut.
    fn lose(&mut self) {}
}

/// What lies behind the row.
pub(super) trait Queue {
    /// Takes a request into the queue; returns whether a request may issue.
    fn join(&mut self, id: u32, turn: &mut Turn<impl Running>) -> bool;
}

/// What lies at the ends of the row: the queue, and the number of requests that the device holds.
pub(super) struct Ends<'a, Q> {
    pub queue: Q,
    pub held: &'a mut u32,
    pub watch: &'a mut Watch,
}

/// Makes the row from one line for each stage: `module::Type;`.
macro_rules! registry {
    ($($name:ident :: $type:ident;)*) => {
        $(mod $name;)*

        $crate::section! {
            /// Keys of the stages.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Keys {
                $(#[doc = "Keys of the one of this name."] $name: $name::Keys;)*
            }
        }

        /// The stages, which are called directly.
        #[derive(Debug)]
        pub(super) struct Row {
            $(pub(super) $name: Option<Box<$name::$type>>,)*
            pub(super) hub: Hub,
            line: Line,
        }

        /// The place of each stage, and that of the queue.
        #[allow(non_camel_case_types)]
        #[repr(u8)]
        enum Number { $($name,)* queue }

        impl Row {
            /// Makes the stages that the plan, or their own keys, have.
            pub(super) fn new(plan: &Plan, keys: &Keys) -> Row {
                Row {
                    $($name: Stage::new(plan, keys).map(Box::new),)*
                    hub: Hub::new(plan.controller),
                    line: Line::default(),
                }
            }

            /// Whether no stage does anything.
            pub(super) fn is_empty(&self) -> bool {
                $(self.$name.is_none())&&*
            }

            /// Lets a command come through the stages from this one on; returns where it is then, and what becomes of
            /// it.
            #[inline]
            fn come(&mut self, from: u8, id: u32, turn: &mut Turn<impl Running>, watch: &mut Watch) -> (u8, Next) {
                $(if from <= Number::$name as u8 && let Some(stage) = &mut self.$name {
                    match stage.come(id, &mut self.hub, turn, watch) {
                        Next::On => {}
                        next => return (Number::$name as u8, next),
                    }
                })*
                (Number::queue as u8, Next::On)
            }

            /// Whether commands may leave a stage now that keeps them for something else than a time.
            #[inline]
            pub(super) fn is_due(&self) -> bool {
                $(self.$name.as_ref().is_some_and(|stage| stage.is_due()))||*
            }

            fn stirs(&self) -> bool {
                $(self.$name.as_ref().is_some_and(|stage| stage.stirs()))||*
            }

            /// Lets commands that stages keep leave them, if they may now.
            fn release(&mut self, turn: &mut Turn<impl Running>, ends: &mut Ends<impl Queue>) {
                $(if self.$name.as_ref().is_some_and(|stage| stage.is_due()) {
                    if let Some(stage) = &mut self.$name {
                        stage.wake(turn, ends.watch);
                    }
                    while let Some((id, next)) =
                        self.$name.as_mut().and_then(|stage| stage.release(turn, ends.watch))
                    {
                        self.follow(Number::$name as u8, next, id, turn, ends);
                    }
                })*
            }

            /// Refuses the commands that stages keep, as the device has turned read-only.
            pub(super) fn close(&mut self) {
                $(if let Some(stage) = &mut self.$name {
                    stage.close();
                })*
            }

            /// Forgets all commands, whose power is cut.
            pub(super) fn lose(&mut self) {
                self.line.clear();
                $(if let Some(stage) = &mut self.$name {
                    stage.lose();
                })*
            }
        }

        registry! { @back [] $($name)* }
    };
    // The way back: the stages in the reverse order.
    (@back [$($reversed:ident)*] $name:ident $($rest:ident)*) => {
        registry! { @back [$name $($reversed)*] $($rest)* }
    };
    (@back [$($name:ident)*]) => {
        impl Row {
            /// Lets a command go back through the stages before this place; returns where it is then, and what becomes
            /// of it.
            #[inline]
            fn back(&mut self, from: u8, id: u32, request: &Request, now_ns: u64) -> (u8, Next) {
                $(if from > Number::$name as u8 && let Some(stage) = &mut self.$name {
                    match stage.back(id, &mut self.hub, request, now_ns) {
                        Next::On => {}
                        next => return (Number::$name as u8, next),
                    }
                })*
                (0, Next::On)
            }
        }
    };
}

registry! {
    command::Command;
    cores::Cores;
    data::Data;
    buffer::Buffer;
}

impl Row {
    /// Returns when the next command is due, ns, or [`crate::clock::NEVER`]; a time in the past stands for now.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        if self.is_due() { 0 } else { self.line.next_ns() }
    }

    /// Takes a command from the host.
    pub(super) fn accept(&mut self, id: u32, turn: &mut Turn<impl Running>, ends: &mut Ends<impl Queue>) {
        self.enter(0, id, turn, ends);
    }

    /// Lets a command come through the stages from this one on; returns whether anything can begin because of it.
    fn enter(
        &mut self,
        from: u8,
        id: u32,
        turn: &mut Turn<impl Running>,
        ends: &mut Ends<impl Queue>,
    ) -> bool {
        let (at, next) = self.come(from, id, turn, ends.watch);
        if let Next::Until(at_ns) = next {
            self.line.add(at_ns, id, To::Come(at + 1));
            return false;
        }
        self.follow(at, next, id, turn, ends) || self.stirs()
    }

    /// Does what a stage, or the row behind its last one, has decided about a command; returns whether anything can
    /// begin because of it.
    fn follow(
        &mut self,
        at: u8,
        next: Next,
        id: u32,
        turn: &mut Turn<impl Running>,
        ends: &mut Ends<impl Queue>,
    ) -> bool {
        match next {
            Next::On if at >= Number::queue as u8 => ends.queue.join(id, turn),
            Next::On => self.enter(at + 1, id, turn, ends),
            Next::Until(at_ns) => {
                self.line.add(at_ns, id, To::Come(at + 1));
                true
            }
            Next::Stays => true,
            Next::Back => {
                self.go_back(at, id, turn.now_ns, turn.pool, turn.done, ends.held);
                true
            }
        }
    }

    /// Answers a command that comes from the queue.
    pub(super) fn answer(&mut self, id: u32, now_ns: u64, pool: &Pool, done: &mut Vec<u32>, held: &mut u32) {
        self.go_back(Number::queue as u8, id, now_ns, pool, done, held);
    }

    /// Lets a command go back through the stages before this place; returns whether it is answered now.
    fn go_back(
        &mut self,
        from: u8,
        id: u32,
        now_ns: u64,
        pool: &Pool,
        done: &mut Vec<u32>,
        held: &mut u32,
    ) -> bool {
        match self.back(from, id, &pool[id], now_ns) {
            (at, Next::Until(at_ns)) => {
                self.line.add(at_ns, id, To::Back(at));
                false
            }
            (_, Next::Stays | Next::Back) => false,
            (_, Next::On) => {
                *held -= 1;
                done.push(id);
                true
            }
        }
    }

    /// Lets the commands that are due go on; returns whether anything can begin because of it.
    pub(super) fn advance(&mut self, turn: &mut Turn<impl Running>, ends: &mut Ends<impl Queue>) -> bool {
        let mut any = self.is_due();
        if any {
            self.release(turn, ends);
        }
        while let Some((id, to)) = self.line.take(turn.now_ns) {
            any |= match to {
                To::Come(from) => self.enter(from, id, turn, ends),
                To::Back(from) => self.go_back(from, id, turn.now_ns, turn.pool, turn.done, ends.held),
            };
        }
        any
    }

    /// Stores in `used` how long link and cores worked up to a moment.
    pub(super) fn used(&self, now_ns: u64, used: &mut Used) {
        let cores = self.cores.iter().flat_map(|cores| cores.busy(now_ns));
        used.set_controller(self.hub.link_busy(now_ns), cores);
    }
}
