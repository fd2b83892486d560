//! Mini-page FTL: the baseline of MSFTL with translation units of 4 KiB.
//!
//! Source: Lv et al., "Exploiting Minipage-Level Mapping to Improve Write Efficiency of NAND Flash", NAS 2018,
//! as Kim and Lee (ICSOFT 2020, section 4.1) simulate it: "using the logical small page-level granularity as the
//! translation page (i.e., 4 KiB)", with its units gathered into NAND pages like those of MSFTL (section 4.2).
//! Everything else is as in [`super::msftl`].

use super::msftl::Flushed;

/// The name under which this FTL is registered.
pub const NAME: &str = "minipage";
/// Description in one line, for `ftlab components`.
pub const DOC: &str =
    "page map flushed by amount, in units of 4 KiB (Lv et al., NAS 2018; Kim and Lee, ICSOFT 2020)";
/// The keys that only minipage has: none.
pub type Keys = ();

/// The mapping cache of the mini-page FTL, whose units are the host's logical pages (section 4.1).
pub type Minipage = Flushed<4096>;
