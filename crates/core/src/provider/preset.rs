//! Providers whose APIs are compatible with those of others: only their addresses, keys and models differ.

use super::known::ModelRow;
use super::profile::{Backend, Endpoint, KeyHeader, Profile};
use super::wire::Wire;
use super::{google, openai, preset_models as models};
use crate::types::dialect::SchemaDialect;

pub(super) static AZURE: Profile = Profile {
    aliases: &["azureopenai", "azure-openai"],
    telemetry_name: Some("azure.ai.openai"),
    ..compatible(
        "Azure",
        Endpoint {
            base_url: "${AZURE_OPENAI_ENDPOINT}/openai/v1",
            base_url_variable: "AZURE_OPENAI_BASE_URL",
            key_variables: &["AZURE_OPENAI_API_KEY"],
            key_header: KeyHeader::Named("api-key"),
            ..OPENAI_API
        },
        openai::MODELS,
    )
};

pub(super) static VERTEX: Profile = Profile {
    aliases: &["vertexai", "vertex-ai"],
    dialect: Some(SchemaDialect::Gemini),
    telemetry_name: Some("gcp.vertex_ai"),
    ..compatible(
        "Vertex",
        Endpoint {
            wires: &[Wire::Gemini],
            base_url: "https://aiplatform.googleapis.com/v1/projects/${GOOGLE_CLOUD_PROJECT}/locations/${GOOGLE_CLOUD_LOCATION:-global}/publishers/google/models/{model}",
            base_url_variable: "VERTEX_BASE_URL",
            key_variables: &["VERTEX_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"],
            ..OPENAI_API
        },
        google::MODELS,
    )
};

pub(super) static BEDROCK: Profile = Profile {
    telemetry_name: Some("aws.bedrock"),
    ..compatible(
        "Bedrock",
        Endpoint {
            base_url: "https://bedrock-mantle.${AWS_REGION:-us-east-1}.api.aws/v1",
            base_url_variable: "BEDROCK_BASE_URL",
            key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
            ..OPENAI_API
        },
        models::BEDROCK,
    )
};

pub(super) static OPENROUTER: Profile =
    hosted("OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", &["OPENROUTER_API_KEY"], &[]);

pub(super) static GROQ: Profile =
    hosted("Groq", "https://api.groq.com/openai/v1", "GROQ_BASE_URL", &["GROQ_API_KEY"], models::GROQ);

pub(super) static MISTRAL: Profile = Profile {
    telemetry_name: Some("mistral_ai"),
    ..hosted("Mistral", "https://api.mistral.ai/v1", "MISTRAL_BASE_URL", &["MISTRAL_API_KEY"], models::MISTRAL)
};

pub(super) static DEEPSEEK: Profile =
    hosted("DeepSeek", "https://api.deepseek.com", "DEEPSEEK_BASE_URL", &["DEEPSEEK_API_KEY"], models::DEEPSEEK);

pub(super) static XAI: Profile = Profile {
    aliases: &["grok"],
    telemetry_name: Some("x_ai"),
    ..hosted("xAI", "https://api.x.ai/v1", "XAI_BASE_URL", &["XAI_API_KEY"], models::XAI)
};

pub(super) static TOGETHER: Profile = Profile {
    aliases: &["togetherai"],
    ..hosted("Together", "https://api.together.xyz/v1", "TOGETHER_BASE_URL", &["TOGETHER_API_KEY"], &[])
};

pub(super) static FIREWORKS: Profile =
    hosted("Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_BASE_URL", &["FIREWORKS_API_KEY"], &[]);

pub(super) static CEREBRAS: Profile =
    hosted("Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_BASE_URL", &["CEREBRAS_API_KEY"], models::CEREBRAS);

pub(super) static MOONSHOT: Profile =
    hosted("Moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_BASE_URL", &["MOONSHOT_API_KEY"], &[]);

pub(super) static PERPLEXITY: Profile =
    hosted("Perplexity", "https://api.perplexity.ai", "PERPLEXITY_BASE_URL", &["PERPLEXITY_API_KEY"], &[]);

pub(super) static VLLM: Profile = local("vLLM", &[], "http://localhost:8000/v1", "VLLM_BASE_URL", &["VLLM_API_KEY"]);

pub(super) static LM_STUDIO: Profile =
    local("LMStudio", &["lm-studio"], "http://localhost:1234/v1", "LMSTUDIO_BASE_URL", &["LMSTUDIO_API_KEY"]);

pub(super) static LLAMA_CPP: Profile = local(
    "llama.cpp",
    &["llamacpp", "llama-cpp"],
    "http://localhost:8080/v1",
    "LLAMACPP_BASE_URL",
    &["LLAMACPP_API_KEY"],
);

/// What the APIs of compatible servers have in common.
const OPENAI_API: Endpoint = Endpoint {
    wires: &[Wire::Chat, Wire::Responses, Wire::ChatFunctions],
    wire_variable: None,
    base_url: "",
    base_url_variable: "",
    key_variables: &[],
    needs_key: true,
    key_header: KeyHeader::Bearer,
    headers: &[],
    rejection_statuses: &[],
};

const fn compatible(name: &'static str, endpoint: Endpoint, models: &'static [ModelRow]) -> Profile {
    Profile {
        name,
        aliases: &[],
        backend: Backend::Http(endpoint),
        dialect: Some(SchemaDialect::OpenAiStrict),
        models,
        is_free: false,
        telemetry_name: None,
    }
}

/// Returns a provider that is compatible with OpenAI.
const fn hosted(
    name: &'static str,
    base_url: &'static str,
    base_url_variable: &'static str,
    key_variables: &'static [&'static str],
    models: &'static [ModelRow],
) -> Profile {
    compatible(name, Endpoint { base_url, base_url_variable, key_variables, ..OPENAI_API }, models)
}

/// Returns a server that people run themselves. It may be started with a key, and costs nothing per token.
const fn local(
    name: &'static str,
    aliases: &'static [&'static str],
    base_url: &'static str,
    base_url_variable: &'static str,
    key_variables: &'static [&'static str],
) -> Profile {
    let endpoint = Endpoint { base_url, base_url_variable, key_variables, needs_key: false, ..OPENAI_API };
    Profile { aliases, is_free: true, ..compatible(name, endpoint, &[]) }
}
