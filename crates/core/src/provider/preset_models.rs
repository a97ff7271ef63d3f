//! The models of providers that are compatible with others.

use super::known::{KnownModel, ModelRow, row};

const fn text(window: u64, max_output: u64) -> KnownModel {
    KnownModel::new(window, max_output).strict()
}

const GPT_OSS: KnownModel = text(131_072, 65_536).reasoning();

pub(super) const BEDROCK: &[ModelRow] =
    &[row("openai.gpt-oss-120b", 0.15, 0.15, 0.6, GPT_OSS), row("openai.gpt-oss-20b", 0.07, 0.07, 0.3, GPT_OSS)];

pub(super) const GROQ: &[ModelRow] = &[
    row("llama-3.1-8b-instant", 0.05, 0.05, 0.08, KnownModel::new(131_072, 131_072)),
    row("llama-3.3-70b-versatile", 0.59, 0.59, 0.79, KnownModel::new(131_072, 32_768)),
    row("openai/gpt-oss-120b", 0.15, 0.075, 0.6, GPT_OSS),
    row("openai/gpt-oss-20b", 0.075, 0.037_5, 0.3, GPT_OSS),
];

pub(super) const MISTRAL: &[ModelRow] = &[
    row("codestral", 0.3, 0.03, 0.9, text(128_000, 128_000)),
    row("devstral-medium", 0.4, 0.04, 2.0, text(256_000, 256_000)),
    row("magistral-medium", 1.5, 0.15, 7.5, text(262_144, 262_144).images().reasoning()),
    row("magistral-small", 0.15, 0.015, 0.6, text(262_144, 262_144).images().reasoning()),
    row("ministral-8b", 0.15, 0.015, 0.15, text(262_144, 262_144).images()),
    row("mistral-large", 0.5, 0.05, 1.5, text(262_144, 262_144).images()),
    row("mistral-medium", 1.5, 0.15, 7.5, text(262_144, 262_144).images().reasoning()),
    row("mistral-small", 0.15, 0.015, 0.6, text(262_144, 262_144).images().reasoning()),
];

pub(super) const DEEPSEEK: &[ModelRow] = &[
    row("deepseek-chat", 0.28, 0.028, 0.42, KnownModel::new(131_072, 8_192)),
    row("deepseek-reasoner", 0.28, 0.028, 0.42, KnownModel::new(131_072, 65_536).reasoning()),
    row("deepseek-v4-flash", 0.3, 0.006, 1.2, KnownModel::new(1_000_000, 393_216).images().reasoning()),
    row("deepseek-v4-pro", 1.32, 0.044, 3.96, KnownModel::new(1_000_000, 393_216).reasoning()),
];

pub(super) const XAI: &[ModelRow] = &[
    row("grok-4.3", 1.25, 0.2, 2.5, text(1_000_000, 1_000_000).images().reasoning()),
    row("grok-4.5", 2.0, 0.3, 6.0, text(500_000, 500_000).images().reasoning()),
    row("grok-4.6", 2.0, 0.5, 6.0, text(500_000, 500_000).images().reasoning()),
    row("grok-4.7", 2.0, 0.5, 6.0, text(500_000, 500_000).images().reasoning()),
    row("grok-code-fast-1", 1.0, 0.2, 2.0, text(256_000, 256_000).images().reasoning()),
];

pub(super) const CEREBRAS: &[ModelRow] = &[
    row("gpt-oss-120b", 0.35, 0.35, 0.75, text(131_072, 32_768).reasoning()),
    row("llama-3.3-70b", 0.85, 0.85, 1.2, KnownModel::new(128_000, 128_000)),
    row("llama3.1-8b", 0.1, 0.1, 0.1, KnownModel::new(128_000, 128_000)),
];
