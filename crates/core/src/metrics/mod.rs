//! What a run reports: letters in formulas are those of docs/glossary.md, a name's end is its unit. `make docs` makes
//! the page of the fields and their types in Python from these structs.

mod behind;
mod device;
pub mod energy;
mod errors;
mod files;
mod flash;
mod health;
mod histogram;
mod intervals;
mod maps;
mod merges;
mod placement;
mod precondition;
mod recorder;
mod report;
mod series;
mod settings;
mod summary;
mod tenants;
mod utilization;
mod wear;

pub use behind::Behind;
pub use device::{Commands, Conflicts, DeviceQueue, WriteBuffer};
pub use energy::{Drawn, Energy, EnergyParts};
pub use errors::Errors;
pub use files::{Benchmark, Done, FileSystem, PageCache, Run};
pub use flash::Flash;
pub use health::{Blocks, EmmcExtCsd, Failed, Health, NvmeSmart, State, UfsHealthDescriptor};
pub use histogram::Histogram;
pub use intervals::{ByHalf, Counters, Intervals, IntervalsReport};
pub use maps::{EraseMap, MissCurve, MissCurves};
pub use merges::{Merge, Merges};
pub use placement::{Front, Placement};
pub use precondition::{Outcome, Preconditioning};
pub use recorder::Recorder;
pub use report::{MappingCache, OwnLegend, Report, Scheduler, Sources, Trace, Waf};
pub use series::{Series, SeriesReport};
pub use settings::Results;
pub use summary::{Bins, Parts, Percentiles, Summary};
pub use tenants::{Fairness, Tenant, TenantFlash};
pub use utilization::{Bottleneck, ByOperation, ParallelOperations, Utilization};
pub use wear::Wear;
