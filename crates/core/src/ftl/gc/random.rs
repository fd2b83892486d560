//! Random: collects a closed block drawn at random, each with equal probability.
//!
//! Under uniform random writes its write amplification is `1 / (1 - rho)` (the closed form of d-choices with `d
//! = 1`). This requires that blocks without an invalid slot are collected too when they are drawn, as they are
//! here ([`super`] explains why this does not go on forever).

use super::d_choices::Drawn;

pub(super) const NAME: &str = "random";
pub(super) const DOC: &str = "any block, each as likely as any other";
pub type Keys = ();

/// The policy `random`, in which a single draw decides.
pub(super) type Random = Drawn<false>;
