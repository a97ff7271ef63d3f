//! Small plots of intervals.

use patter::stats::{Contrast, MetricKind};

/// The width of a plot.
const WIDTH: usize = 25;

/// Draws an effect with its interval, with no effect in the middle: `·····├──●──┤··│·····`.
pub(super) fn plot(contrast: &Contrast) -> String {
    let Some(effect) = contrast.effect else { return String::new() };
    let none = if contrast.kind == MetricKind::Ratio { 1.0 } else { 0.0 };
    let (low, high) = effect.interval.map_or((effect.value, effect.value), |interval| (interval.low, interval.high));
    // The scale covers at least twice the margin, so that effects that do not matter look small.
    let reach =
        [low - none, high - none, 2.0 * contrast.margin].into_iter().fold(0.0_f64, |most, end| most.max(end.abs()));
    if reach <= 0.0 || !reach.is_finite() {
        return String::new();
    }
    let middle = WIDTH / 2;
    let column = |value: f64| {
        let from_middle = (value - none) / reach * middle as f64;
        (middle as f64 + from_middle).round().clamp(0.0, (WIDTH - 1) as f64) as usize
    };
    let low = column(low);
    let high = column(high);
    let value = column(effect.value);
    let sign = |at: usize| match at {
        _ if at == value => '●',
        _ if at == middle && (at < low || at > high) => '│',
        _ if at == middle => '┼',
        _ if at == low => '├',
        _ if at == high => '┤',
        _ if (low..=high).contains(&at) => '─',
        _ => '·',
    };
    (0..WIDTH).map(sign).collect()
}
