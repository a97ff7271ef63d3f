//! Models that are part of Patter.

use super::profile::{Backend, BuiltIn, Profile};

pub(super) static DEMO: Profile = built_in("demo", BuiltIn::Demo);

pub(super) static SCRIPTED: Profile = built_in("scripted", BuiltIn::Scripted);

const fn built_in(name: &'static str, model: BuiltIn) -> Profile {
    Profile {
        name,
        aliases: &[],
        backend: Backend::BuiltIn(model),
        dialect: None,
        models: &[],
        is_free: true,
        telemetry_name: None,
    }
}
