//! MAP: mapping-cache-aware scheduling, which combines HP for the hits with RB for the misses.
//!
//! Source: Ji et al., TCAD 2018, section V-B and Algorithm 1.

use super::hp::HitsOver;
use super::rb::Rb;

pub(super) const NAME: &str = "map";
pub(super) const DOC: &str = "hp for hits, rb for misses (Ji et al., TCAD 2018)";
pub type Keys = ();

/// The scheduler `map`: hits first, then misses in the order of RB.
pub(super) type Map = HitsOver<Rb>;
