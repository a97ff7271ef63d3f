//! The forest plot: the difference of every metric from the baseline with its confidence interval, on common axes.
//!
//! Pass rates are drawn in percentage points. All other metrics are drawn as ratios on a logarithmic axis, where half as
//! much and twice as much are equally far from no difference. A metric that is compared by difference is drawn relative to
//! the mean of the baseline. The plot is a table, so that each figure is also text.

use super::decision::{ArmDecision, is_identical};
use super::number::{digits, display_scale, effect, effect_range, mean, percent, signed};
use super::summary::finding;
use crate::html::{Html, html};
use patter_core::stats::{Comparison, Conclusion, Contrast, Interval, MetricKind, Relevance};

/// The ends of the axis of ratios. Longer intervals are cut off, and end in an arrow.
const REACHES: [(f64, &[f64]); 8] = [
    (1.25, &[1.1, 1.25]),
    (1.5, &[1.25, 1.5]),
    (2.0, &[1.5, 2.0]),
    (3.0, &[2.0, 3.0]),
    (5.0, &[2.0, 5.0]),
    (10.0, &[3.0, 10.0]),
    (30.0, &[5.0, 30.0]),
    (100.0, &[10.0, 100.0]),
];
/// The ends of the axis of percentage points, with one more tick.
const POINTS: [(f64, f64); 5] = [(10.0, 5.0), (20.0, 10.0), (30.0, 15.0), (60.0, 30.0), (100.0, 50.0)];
/// The distance of the ends of an axis from the middle, in percent of the width.
const HALF: f64 = 44.0;

/// Returns the plot.
pub(super) fn forest(comparison: &Comparison, decisions: &[ArmDecision]) -> Html {
    let is_multiple = decisions.len() > 1;
    let metrics = decisions.first().map(|first| first.contrasts.len()).unwrap_or(0);
    // Grouped by metric, so that the arms can be compared with one another.
    let ordered =
        || (0..metrics).flat_map(|metric| decisions.iter().filter_map(move |arm| arm.contrasts.get(metric).copied()));
    let mut body = Html::default();
    for axis in [AxisKind::Points, AxisKind::Ratio] {
        let rows: Vec<(&Contrast, Option<Reading>)> = ordered()
            .filter(|contrast| axis.has(contrast))
            .map(|contrast| (contrast, Reading::new(contrast)))
            .collect();
        if rows.is_empty() {
            continue;
        }
        let scale = Axis::new(axis, rows.iter().filter_map(|(_, reading)| *reading));
        for (contrast, reading) in &rows {
            let plot = reading.map_or(Html::default(), |reading| row_plot(contrast, reading, &scale));
            let is_first = decisions.first().is_some_and(|first| first.arm == contrast.arm);
            body.push(&row(contrast, &plot, is_multiple.then_some(is_first)));
        }
        if rows.iter().any(|(_, reading)| reading.is_some()) {
            body.push(&html!(
                "<tr class=\"axis-row\" role=\"presentation\" aria-hidden=\"true\"><td colspan=\"2\"></td><td>{}</td><td colspan=\"2\"></td></tr>",
                scale.drawing()
            ));
        }
    }
    let head = match decisions {
        [only] => html!("<span class=\"arm\">{}</span> → <span class=\"arm\">{}</span>", comparison.baseline, only.arm),
        _ => html!("<span class=\"arm\">{}</span> → arm", comparison.baseline),
    };
    html!(
        "<table class=\"forest\" role=\"table\"><caption>Difference from <code>{}</code> with {} confidence intervals. Differences \
         within the shaded band are too small to matter.</caption><thead role=\"rowgroup\"><tr role=\"row\">\
         <th scope=\"col\" role=\"columnheader\">Metric</th><th scope=\"col\" role=\"columnheader\">Mean, {}</th>\
         <th scope=\"col\" role=\"columnheader\">Less <span aria-hidden=\"true\">←</span> same <span aria-hidden=\"true\">→</span> more</th>\
         <th scope=\"col\" role=\"columnheader\">Difference</th><th scope=\"col\" role=\"columnheader\">Finding</th></tr></thead>\
         <tbody role=\"rowgroup\">{}</tbody></table>",
        comparison.baseline,
        percent(1.0 - comparison.options.alpha),
        head,
        body
    )
}

/// Returns the row of a metric; of several arms, `is_first` says whether it is the first arm with this metric.
fn row(contrast: &Contrast, plot: &Html, is_first: Option<bool>) -> Html {
    let arm = match is_first {
        Some(_) => html!(" <span class=\"arm\">{}</span>", contrast.arm),
        None => Html::default(),
    };
    let class = if is_first == Some(true) { "first" } else { "" };
    let mean = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| mean(contrast, value));
    let difference = contrast.effect.map_or_else(
        || html!("–"),
        |estimate| {
            let interval = estimate.interval.map_or(Html::default(), |interval| {
                html!(" <span class=\"quiet\">{}</span>", effect_range(contrast, interval.low, interval.high))
            });
            html!("<b>{}</b>{}", effect(contrast, estimate.value), interval)
        },
    );
    html!(
        "<tr role=\"row\" class=\"{}\"><th scope=\"row\" role=\"rowheader\">{}{}</th><td role=\"cell\" class=\"means\">{} → {}</td>\
         <td role=\"cell\" class=\"plot\">{}</td><td role=\"cell\" class=\"change\">{}</td><td role=\"cell\">{}</td></tr>",
        class,
        contrast.metric.name,
        arm,
        mean(contrast.baseline_mean),
        mean(contrast.arm_mean),
        plot,
        difference,
        finding(contrast)
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AxisKind {
    Points,
    Ratio,
}

impl AxisKind {
    fn has(self, contrast: &Contrast) -> bool {
        (contrast.kind == MetricKind::Pass) == (self == AxisKind::Points)
    }
}

/// An effect with its interval and margin, as distances from no difference: percentage points, or logarithms of ratios.
#[derive(Clone, Copy)]
struct Reading {
    value: f64,
    ends: Option<(f64, f64)>,
    margin: (f64, f64),
}

impl Reading {
    /// Returns `None` if there is no effect, or nothing to which the difference is relative.
    fn new(contrast: &Contrast) -> Option<Self> {
        let estimate = contrast.effect?;
        let mean = contrast.baseline_mean.filter(|mean| *mean > 0.0);
        let distance = |effect: f64| match contrast.kind {
            MetricKind::Pass => Some(display_scale(MetricKind::Pass, effect)),
            // A ratio of 0 is infinitely far away.
            MetricKind::Ratio => Some(effect.max(0.0).ln()),
            MetricKind::Difference => Some((1.0 + effect / mean?).max(0.0).ln()),
        };
        let margin = match contrast.kind {
            MetricKind::Pass => (-contrast.margin * 100.0, contrast.margin * 100.0),
            MetricKind::Ratio => (-contrast.margin.ln_1p(), contrast.margin.ln_1p()),
            MetricKind::Difference => (distance(-contrast.margin)?, distance(contrast.margin)?),
        };
        let ends = estimate.interval.and_then(|Interval { low, high }| Some((distance(low)?, distance(high)?)));
        Some(Self { value: distance(estimate.value)?, ends, margin })
    }

    /// Returns the largest finite distance of the effect and its interval.
    fn reach(self) -> f64 {
        let ends = self.ends.into_iter().flat_map(|(low, high)| [low, high]);
        let all = ends.chain([self.value]).map(f64::abs);
        all.filter(|distance| distance.is_finite()).fold(0.0, f64::max)
    }
}

/// A horizontal axis with no difference in the middle.
struct Axis {
    kind: AxisKind,
    reach: f64,
    /// The ticks on the right side; those on the left mirror them.
    ticks: Vec<f64>,
}

impl Axis {
    fn new(kind: AxisKind, readings: impl Iterator<Item = Reading>) -> Self {
        let needed = readings.map(Reading::reach).fold(0.0, f64::max);
        match kind {
            AxisKind::Points => {
                let end = POINTS.iter().find(|(end, _)| *end >= needed).or(POINTS.last());
                let (end, tick) = end.copied().unwrap_or((100.0, 50.0));
                Self { kind, reach: end, ticks: vec![tick, end] }
            }
            AxisKind::Ratio => {
                let end = REACHES.iter().find(|(end, _)| end.ln() >= needed).or(REACHES.last());
                let (end, ticks) = end.copied().unwrap_or((2.0, &[2.0]));
                Self { kind, reach: end.ln(), ticks: ticks.iter().map(|tick| tick.ln()).collect() }
            }
        }
    }

    /// Returns the position of a distance, in percent of the width.
    fn x(&self, distance: f64) -> f64 {
        50.0 + (distance / self.reach).clamp(-1.0, 1.0) * HALF
    }

    fn exceeds(&self, distance: f64) -> bool {
        distance.abs() > self.reach * 1.001
    }

    fn label(&self, distance: f64) -> String {
        match self.kind {
            AxisKind::Points => signed(distance),
            AxisKind::Ratio if self.reach.exp() < 2.5 => {
                format!("{}%", signed(((distance.exp() - 1.0) * 100.0).round()))
            }
            AxisKind::Ratio => format!("{}×", digits((distance.exp() * 100.0).round() / 100.0)),
        }
    }

    fn drawing(&self) -> Html {
        let ticks = self.ticks.iter().flat_map(|tick| [-tick, *tick]);
        let ticks = ticks.map(|tick| {
            let x = self.x(tick);
            html!(
                "<line class=\"axis\" x1=\"{}%\" x2=\"{}%\" y1=\"1\" y2=\"5\"/><text class=\"mid\" x=\"{}%\" y=\"18\">{}</text>",
                x,
                x,
                x,
                self.label(tick)
            )
        });
        let same = match self.kind {
            AxisKind::Points => "0 points",
            AxisKind::Ratio if self.reach.exp() < 2.5 => "0%",
            AxisKind::Ratio => "1×",
        };
        html!(
            "<svg width=\"100%\" height=\"22\"><line class=\"axis\" x1=\"{}%\" x2=\"{}%\" y1=\"1\" y2=\"1\"/>\
             <line class=\"zero\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"5\"/>{}<text class=\"mid\" x=\"50%\" y=\"18\">{}</text></svg>",
            50.0 - HALF,
            50.0 + HALF,
            ticks.collect::<Html>(),
            same
        )
    }
}

/// Draws the effect of one metric.
fn row_plot(contrast: &Contrast, reading: Reading, axis: &Axis) -> Html {
    let class = match (contrast.verdict.conclusion, contrast.verdict.relevance) {
        (Conclusion::Better, _) => "better",
        (Conclusion::Worse, _) => "worse",
        (_, Relevance::Negligible) => "equal",
        _ if is_identical(contrast) => "equal",
        _ => "unclear",
    };
    let line = reading.ends.map_or(Html::default(), |(low, high)| {
        html!(
            "<line class=\"reach\" x1=\"{}%\" x2=\"{}%\" y1=\"17\" y2=\"17\"/>{}{}",
            axis.x(low),
            axis.x(high),
            end(axis, low, -1.0),
            end(axis, high, 1.0)
        )
    });
    let (least, most) = reading.margin;
    html!(
        "<svg class=\"{}\" aria-hidden=\"true\" width=\"100%\" height=\"34\"><rect class=\"band\" x=\"{}%\" width=\"{}%\" y=\"0\" height=\"34\"/>\
         <line class=\"zero\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"34\"/>{}<circle class=\"point\" cx=\"{}%\" cy=\"17\" r=\"5.5\"/></svg>",
        class,
        axis.x(least),
        axis.x(most) - axis.x(least),
        line,
        axis.x(reading.value)
    )
}

/// Draws the end of an interval: a bar, or an arrow if it lies beyond the axis.
fn end(axis: &Axis, distance: f64, side: f64) -> Html {
    let x = axis.x(distance);
    if !axis.exceeds(distance) {
        return html!("<line class=\"end\" x1=\"{}%\" x2=\"{}%\" y1=\"11\" y2=\"23\"/>", x, x);
    }
    // Positions within a drawing are percentages, so the arrow is a nested drawing with its own origin.
    html!(
        "<svg class=\"arrow\" x=\"{}%\" y=\"17\" width=\"1\" height=\"1\"><path d=\"M{} -6 L{} 0 L{} 6 Z\"/></svg>",
        x,
        0.0,
        side * 9.0,
        0.0
    )
}
