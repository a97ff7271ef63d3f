//! Drawings. Horizontal coordinates are percentages of the width, so that drawings scale but their text does not.

use super::number::{digits, duration};
use crate::html::{Html, html};

/// The number of columns of a histogram.
const BINS: usize = 48;
/// If the largest value exceeds the median by more than this factor, the scale is logarithmic.
const LOG_SCALE_RATIO: f64 = 20.0;

/// The scale of the latencies of all arms.
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// Returns a scale for all values, or `None` if there are none.
    pub(super) fn new(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let least = *sorted.first()?;
        let most = *sorted.last()?;
        let median = quantile(&sorted, 0.5)?;
        let is_logarithmic = least > 0.0 && most / median > LOG_SCALE_RATIO;
        let (low, high) = match is_logarithmic {
            true => (10_f64.powf(least.log10().floor()), 10_f64.powf(most.log10().ceil())),
            false => (0.0, round_up(most)),
        };
        Some(Self { low, high, is_logarithmic })
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.is_logarithmic
    }

    /// Returns the position of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.high / self.low).log10().round().max(1.0) as i32;
            let step = (decades / 5 + 1).max(1);
            return (0..=decades).step_by(step as usize).map(|decade| self.low * 10_f64.powi(decade)).collect();
        }
        (0..=4).map(|part| self.low + (self.high - self.low) * f64::from(part) / 4.0).collect()
    }
}

/// Draws a histogram of sorted values, with the median and the 95th percentile.
pub(super) fn histogram(sorted: &[f64], scale: &Scale, label: &str) -> Html {
    let mut bins = [0_usize; BINS];
    for value in sorted {
        let bin = ((scale.share(*value) * BINS as f64) as usize).min(BINS - 1);
        if let Some(count) = bins.get_mut(bin) {
            *count += 1;
        }
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let x_of = |share: f64| 2.0 + share * 96.0;
    let width = 96.0 / BINS as f64;
    let columns = bins.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bin, count)| {
        let height = (*count as f64 / most * 44.0).max(1.5);
        let left = x_of(bin as f64 / BINS as f64) + width * 0.08;
        html!("<rect x=\"{}%\" width=\"{}%\" y=\"{}\" height=\"{}\"/>", left, width * 0.84, 80.0 - height, height)
    });
    let mark = |name: &str, share: f64, top: f64| {
        let Some(value) = percentile(sorted, share) else { return Html::default() };
        let x = x_of(scale.share(value));
        let side = if x > 65.0 { "far" } else { "near" };
        let shift = if x > 65.0 { -5.0 } else { 5.0 };
        html!(
            "<line class=\"mark\" x1=\"{}%\" x2=\"{}%\" y1=\"{}\" y2=\"80\"/>\
             <text class=\"label {}\" x=\"{}%\" dx=\"{}\" y=\"{}\">{}</text>",
            x,
            x,
            top - 8.0,
            side,
            x,
            shift,
            top,
            format!("{name} {}", duration(value))
        )
    };
    let ticks = scale.ticks().into_iter().map(|tick| {
        let x = x_of(scale.share(tick));
        let side = if x < 5.0 { "near" } else if x > 95.0 { "far" } else { "mid" };
        let tick_label = if tick == 0.0 { "0".to_owned() } else { axis_duration(tick) };
        html!(
            "<line class=\"axis\" x1=\"{}%\" x2=\"{}%\" y1=\"80\" y2=\"84\"/><text class=\"{}\" x=\"{}%\" y=\"98\">{}</text>",
            x,
            x,
            side,
            x,
            tick_label
        )
    });
    html!(
        "<svg class=\"spread\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"104\">{}\
         <line class=\"axis\" x1=\"2%\" x2=\"98%\" y1=\"80\" y2=\"80\"/>{}{}{}</svg>",
        label,
        columns.collect::<Html>(),
        mark("median", 0.5, 28.0),
        mark("p95", 0.95, 12.0),
        ticks.collect::<Html>()
    )
}

/// Draws a bar of three parts: cases won, equal and lost.
pub(super) fn stack(won: usize, same: usize, lost: usize) -> Html {
    let all = (won + same + lost).max(1) as f64;
    let mut left = 0.0;
    let parts = [("won", won), ("same", same), ("lost", lost)].map(|(class, cases)| {
        let width = cases as f64 / all * 100.0;
        let x = left;
        left += width;
        if cases == 0 {
            return Html::default();
        }
        html!("<rect class=\"{}\" x=\"{}%\" width=\"{}%\" height=\"10\"/>", class, x, width)
    });
    html!(
        "<svg class=\"stack\" aria-hidden=\"true\" width=\"100%\" height=\"10\">{}</svg>",
        parts.into_iter().collect::<Html>()
    )
}

/// Draws a bar for a share.
pub(super) fn bar(share: f64) -> Html {
    html!(
        "<svg class=\"bar\" aria-hidden=\"true\" width=\"100%\" height=\"6\"><rect class=\"track\" width=\"100%\" \
         height=\"6\" rx=\"3\"/><rect class=\"fill\" width=\"{}%\" height=\"6\" rx=\"3\"/></svg>",
        share.clamp(0.0, 1.0) * 100.0
    )
}

/// Returns a quantile of sorted values, interpolated between neighbours.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = share * last as f64;
    let below = sorted.get(position.floor() as usize)?;
    let above = sorted.get((position.ceil() as usize).min(last))?;
    Some(below + (above - below) * position.fract())
}

/// Returns the smallest value that at least a share of the sorted values do not exceed.
pub(super) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Formats a duration on an axis, without trailing zeros.
fn axis_duration(ms: f64) -> String {
    match ms {
        ms if ms < 1_000.0 => format!("{}\u{a0}ms", digits(ms)),
        ms if ms < 60_000.0 => format!("{}\u{a0}s", digits(ms / 1e3)),
        ms => duration(ms),
    }
}

/// Rounds up to a number that is easy to read.
fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * unit).find(|rounded| *rounded >= value).unwrap_or(value)
}
