//! Acceptance scenarios: one `.feature` file per founding report, run against the real service.
//!
//! The steps stand in `tests/acceptance`. A scenario tagged `@catches` is run a second time against the faulty
//! algorithm of the report, and must fail there.
