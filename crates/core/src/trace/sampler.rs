//! Which traces are recorded.

use crate::session::{TraceId, TraceParent};
use std::str::FromStr;
use thiserror::Error;

/// Decides which traces are recorded, as `OTEL_TRACES_SAMPLER` names them.
///
/// ```
/// use patter_core::trace::{Sampler, TraceId};
/// let half = Sampler::parse("traceidratio", Some("0.5")).unwrap();
/// assert!(half.samples(TraceId([0x10; 16]), None));
/// assert!(!half.samples(TraceId([0xf0; 16]), None));
/// assert!(Sampler::parse("sometimes", None).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// The share of traces that are recorded, from 0 to 1.
    ratio: f64,
    /// Whether a trace that another program started is recorded if that program records it.
    follows_parent: bool,
}

/// An error in the settings of a sampler.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SamplerError {
    /// The name is unknown.
    #[error(
        "unknown sampler `{0}`: the samplers are always_on, always_off, traceidratio, and these with `parentbased_` before \
         them"
    )]
    Name(String),
    /// The ratio is not a number from 0 to 1.
    #[error("`{0}` is not a number from 0 to 1")]
    Ratio(String),
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, follows_parent: true }
    }
}

impl Sampler {
    /// Reads a sampler from its name and its argument.
    pub fn parse(name: &str, argument: Option<&str>) -> Result<Self, SamplerError> {
        let name = name.trim();
        let follows_parent = name.starts_with("parentbased_");
        let ratio = match name.strip_prefix("parentbased_").unwrap_or(name) {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match argument.map(str::trim).filter(|text| !text.is_empty()) {
                None => 1.0,
                Some(text) => f64::from_str(text)
                    .ok()
                    .filter(|ratio| (0.0..=1.0).contains(ratio))
                    .ok_or_else(|| SamplerError::Ratio(text.to_owned()))?,
            },
            _ => return Err(SamplerError::Name(name.to_owned())),
        };
        Ok(Self { ratio, follows_parent })
    }

    /// Returns whether a trace is recorded. Programs that use the same ratio decide the same about a trace.
    pub fn samples(&self, trace_id: TraceId, parent: Option<TraceParent>) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent.is_sampled;
        }
        let low = trace_id.0.iter().skip(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        // One bit less, as other implementations do it.
        let share = (low >> 1) as f64 / (1u64 << 63) as f64;
        share < self.ratio
    }
}
