//! What can be asked about: the labels, relations and properties of a graph.

use std::fmt::Write;

/// The labels and relations of a kind of graph. Queries are checked against it, so that a misspelt name is an error
/// instead of an empty answer.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// What the graph describes, in a sentence.
    pub description: &'static str,
    /// The labels of vertices.
    pub labels: &'static [LabelSchema],
    /// The relations between vertices.
    pub relations: &'static [RelationSchema],
}

/// A label of vertices.
#[derive(Debug, Clone, Copy)]
pub struct LabelSchema {
    /// The label.
    pub name: &'static str,
    /// What has the label, in a few words.
    pub description: &'static str,
    /// The properties.
    pub properties: &'static [PropertySchema],
}

/// A property: its name, and what it says.
pub type PropertySchema = (&'static str, &'static str);

/// A relation between vertices.
#[derive(Debug, Clone, Copy)]
pub struct RelationSchema {
    /// The name.
    pub name: &'static str,
    /// What it says, in a few words.
    pub description: &'static str,
    /// The labels that it leads from and to.
    pub ends: &'static [(&'static str, &'static str)],
    /// The properties.
    pub properties: &'static [PropertySchema],
}

impl Schema {
    /// Returns a label.
    pub fn label(&self, name: &str) -> Option<&'static LabelSchema> {
        self.labels.iter().find(|label| label.name == name)
    }

    /// Returns a relation.
    pub fn relation(&self, name: &str) -> Option<&'static RelationSchema> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Describes the schema for people.
    ///
    /// ```
    /// use patter_core::query::PROJECT_SCHEMA;
    /// assert!(PROJECT_SCHEMA.describe().contains("(Agent)-[:calls]->(Tool)"));
    /// ```
    pub fn describe(&self) -> String {
        let mut out = format!("{}\n\nLabels:\n", self.description);
        for label in self.labels {
            let _ = writeln!(out, "  {:<10}{}", label.name, label.description);
            describe_properties(&mut out, label.properties);
        }
        out.push_str("\nRelations:\n");
        for relation in self.relations {
            let _ = writeln!(out, "  {:<14}{}", relation.name, relation.description);
            for (from, to) in relation.ends {
                let _ = writeln!(out, "    ({from})-[:{}]->({to})", relation.name);
            }
            describe_properties(&mut out, relation.properties);
        }
        out
    }

    /// Returns the schema as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let properties = |properties: &[PropertySchema]| {
            let pairs = properties.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
            serde_json::Value::Object(pairs.collect())
        };
        let labels = self.labels.iter().map(|label| {
            serde_json::json!({
                "label": label.name,
                "description": label.description,
                "properties": properties(label.properties),
            })
        });
        let relations = self.relations.iter().map(|relation| {
            let ends = relation.ends.iter().map(|(from, to)| serde_json::json!({"from": from, "to": to}));
            serde_json::json!({
                "relation": relation.name,
                "description": relation.description,
                "ends": ends.collect::<Vec<_>>(),
                "properties": properties(relation.properties),
            })
        });
        serde_json::json!({
            "version": 1,
            "labels": labels.collect::<Vec<_>>(),
            "relations": relations.collect::<Vec<_>>(),
        })
    }
}

fn describe_properties(out: &mut String, properties: &[PropertySchema]) {
    for (name, description) in properties {
        let _ = writeln!(out, "      {name:<16}{description}");
    }
}

/// The graph of a project.
pub const PROJECT_SCHEMA: Schema = Schema {
    description: "The graph of a project: what its files declare, and what that is bound to.",
    labels: &[
        LabelSchema {
            name: "Agent",
            description: "an agent or a workflow, at the top level of a file or inside another one",
            properties: &[
                ("name", "the name, with those of the agents around it: `desk/judge`"),
                ("description", "as declared"),
                ("instruction", "as declared"),
                ("extends", "the name of the agent that it extends; what it inherits is there, too"),
                ("model", "the model, such as `OpenAI/gpt-4o`"),
                ("fallback", "the models that replace it"),
                ("temperature", "as declared"),
                ("topP", "as declared"),
                ("topK", "as declared"),
                ("maxTokens", "as declared"),
                ("stop", "as declared"),
                ("seed", "as declared"),
                ("reasoningEffort", "as declared"),
                ("takes", "the type of the input, as declared"),
                ("returns", "the type of the answer, as declared"),
                ("maxTurns", "the limit on model calls, as declared"),
                ("maxModelCalls", "the limit on model calls of a workflow, as declared"),
                ("maxToolCalls", "the limit on tool calls, as declared"),
                ("maxTotalTokens", "the limit on tokens, as declared"),
                ("maxCost", "the limit on costs in dollars, as declared"),
                ("timeout", "the limit on time in seconds, as declared"),
                ("context", "as declared"),
                ("contextWindow", "as declared"),
                ("steps", "how many steps a workflow has"),
                ("tools", "how many different tools it calls"),
                ("delegates", "how many other agents it calls"),
                ("callers", "how many other agents call it"),
                ("file", "the file that declares it"),
                ("line", "the line in that file"),
            ],
        },
        LabelSchema {
            name: "Delegate",
            description: "an agent that another agent calls; it has the label Agent, too",
            properties: &[],
        },
        LabelSchema {
            name: "Workflow",
            description: "an agent that has steps instead of a model; it has the label Agent, too",
            properties: &[],
        },
        LabelSchema {
            name: "Pipe",
            description: "a workflow of tools in a row; it has the labels Agent and Workflow, too",
            properties: &[],
        },
        LabelSchema {
            name: "Step",
            description: "a step of a workflow",
            properties: &[
                ("name", "the workflow and the step: `article/review`"),
                ("step", "the name of the step"),
                ("kind", "`call`, `each`, `human` or `give`"),
                ("calls", "the name of what it calls"),
                ("question", "what a person is asked"),
                ("expires", "how long the person has, in seconds"),
                ("returns", "the type of the answer of the person, as declared"),
                ("width", "how many items are worked on at once"),
                ("atMost", "the most items"),
                ("file", "the file that declares it"),
                ("line", "the line in that file"),
            ],
        },
        LabelSchema {
            name: "Tool",
            description: "a tool of the library, or one that an agent calls and that is not there",
            properties: &[
                ("name", "the full name, such as `mail/send`"),
                ("description", "as declared"),
                ("effect", "`pure`, `reads`, `network` or `writes`"),
                ("kind", "what implements it: `http`, `command`, `mcp`, `native`"),
                ("layer", "`internal`, `org` or `project`"),
                ("toolbox", "the name of its toolbox"),
                ("status", "`known`, `not_started` (of an MCP server) or `missing`"),
                ("idempotent", "whether a call may be repeated"),
                ("sealed", "whether higher layers cannot override it"),
                ("host", "the server that it sends requests to"),
                ("command", "the command that it runs, as a list"),
                ("parameters", "the names of its parameters, as a list"),
                ("signature", "its signature"),
                ("callers", "how many agents call it"),
                ("source", "where it comes from: `shop.gram:2:1`, `built in`"),
            ],
        },
        LabelSchema {
            name: "Toolbox",
            description: "a toolbox or an MCP server",
            properties: &[("name", "the name"), ("layer", "`internal`, `org` or `project`")],
        },
        LabelSchema {
            name: "Toolkit",
            description: "a named set of tools",
            properties: &[
                ("name", "the name"),
                ("description", "as declared"),
                ("file", "the file that declares it"),
                ("line", "the line in that file"),
            ],
        },
        LabelSchema {
            name: "Layer",
            description: "a layer of the library",
            properties: &[("name", "`internal`, `org` or `project`")],
        },
        LabelSchema {
            name: "Model",
            description: "a model that an agent uses",
            properties: &[
                ("name", "the name, such as `OpenAI/gpt-4o`"),
                ("provider", "its provider, such as `OpenAI`"),
                ("agents", "how many agents use it"),
            ],
        },
        LabelSchema {
            name: "Rule",
            description: "a permission rule of an agent or of patter.toml",
            properties: &[
                ("name", "the rule: `ask shop/refund when amount > 100`"),
                ("decision", "`allow`, `ask` or `deny`"),
                ("conditional", "whether it depends on arguments"),
                ("origin", "the file that has it"),
            ],
        },
        LabelSchema {
            name: "Case",
            description: "a test case",
            properties: &[
                ("name", "the name"),
                ("input", "the messages, as a list"),
                ("tags", "the tags, as a list"),
                ("checks", "how many checks it has"),
                ("file", "the file that declares it"),
                ("line", "the line in that file"),
            ],
        },
        LabelSchema {
            name: "Schedule",
            description: "when an agent runs",
            properties: &[
                ("name", "the name"),
                ("description", "as declared"),
                ("at", "the times, as declared"),
                ("timezone", "the time zone, as declared"),
                ("webhook", "the URL that learns about the end of each run, as declared"),
                ("file", "the file that declares it"),
                ("line", "the line in that file"),
            ],
        },
        LabelSchema {
            name: "Finding",
            description: "something that `patter check` finds",
            properties: &[
                ("name", "the code of the rule, such as `P045`"),
                ("level", "`error` or `warning`"),
                ("message", "the message"),
                ("file", "the file"),
                ("line", "the line in that file"),
            ],
        },
    ],
    relations: &[
        RelationSchema {
            name: "calls",
            description: "an agent has a tool or another agent among its elements",
            ends: &[("Agent", "Tool"), ("Agent", "Agent")],
            properties: &[
                ("as", "the name by which the agent calls it"),
                ("toolkit", "the toolkit it comes from"),
                ("inherited", "the agent it is inherited from, if it is inherited"),
            ],
        },
        RelationSchema {
            name: "delegates_to",
            description: "an agent calls another agent",
            ends: &[("Agent", "Agent")],
            properties: &[("as", "the name by which the agent calls it")],
        },
        RelationSchema {
            name: "has_step",
            description: "a workflow has a step",
            ends: &[("Agent", "Step")],
            properties: &[],
        },
        RelationSchema {
            name: "next",
            description: "a step of a workflow follows another",
            ends: &[("Step", "Step")],
            properties: &[
                ("kind", "`then`, `when`, `otherwise`, `failed`, `exhausted` or `handoff`"),
                ("when", "the condition: `verdict is good`"),
                ("atMost", "how often it may lead back"),
            ],
        },
        RelationSchema {
            name: "runs",
            description: "a step calls an agent or a tool",
            ends: &[("Step", "Agent"), ("Step", "Tool")],
            properties: &[],
        },
        RelationSchema {
            name: "extends",
            description: "an agent extends another: it has everything that the other has",
            ends: &[("Agent", "Agent")],
            properties: &[],
        },
        RelationSchema {
            name: "may",
            description: "what the permission rules say about such a call: one relation for each possible decision",
            ends: &[("Agent", "Tool"), ("Agent", "Agent")],
            properties: &[
                ("decision", "`allow` (nobody is asked), `ask` or `deny`"),
                ("when", "the conditions under which that is decided; missing if there are none"),
                ("because", "the rule that decides, or why there is none"),
            ],
        },
        RelationSchema {
            name: "served_by",
            description: "an agent uses a model",
            ends: &[("Agent", "Model")],
            properties: &[("fallback", "whether it only replaces another model")],
        },
        RelationSchema {
            name: "declares",
            description: "where something is declared",
            ends: &[
                ("Layer", "Toolbox"),
                ("Layer", "Tool"),
                ("Layer", "Agent"),
                ("Layer", "Toolkit"),
                ("Toolbox", "Tool"),
                ("Agent", "Agent"),
                ("Agent", "Rule"),
            ],
            properties: &[],
        },
        RelationSchema {
            name: "uses",
            description: "an agent has a toolkit among its elements",
            ends: &[("Agent", "Toolkit")],
            properties: &[],
        },
        RelationSchema {
            name: "includes",
            description: "a toolkit includes a tool",
            ends: &[("Toolkit", "Tool")],
            properties: &[],
        },
        RelationSchema {
            name: "about",
            description: "a permission rule is about a tool or an agent",
            ends: &[("Rule", "Tool"), ("Rule", "Agent")],
            properties: &[],
        },
        RelationSchema {
            name: "expects",
            description: "a case has a check that the tool or agent is called",
            ends: &[("Case", "Tool"), ("Case", "Agent")],
            properties: &[],
        },
        RelationSchema {
            name: "starts",
            description: "a schedule runs an agent",
            ends: &[("Schedule", "Agent")],
            properties: &[],
        },
        RelationSchema {
            name: "has",
            description: "a finding is about an agent, a step, a tool, a toolkit or a schedule",
            ends: &[
                ("Agent", "Finding"),
                ("Step", "Finding"),
                ("Tool", "Finding"),
                ("Toolkit", "Finding"),
                ("Schedule", "Finding"),
            ],
            properties: &[],
        },
    ],
};

/// The graph of stored sessions.
pub const SESSION_SCHEMA: Schema = Schema {
    description: "The graph of stored sessions: their runs and the calls of tools. Each session is a graph of its own.",
    labels: &[
        LabelSchema {
            name: "Session",
            description: "a session",
            properties: &[
                ("name", "the id"),
                ("agent", "the agent"),
                ("title", "the title"),
                ("state", "as `patter sessions` shows it"),
                ("runs", "how many runs it has"),
                ("created", "when it was created, in seconds since 1970"),
            ],
        },
        LabelSchema {
            name: "Run",
            description: "a run of an agent: one message and everything up to the answer, also if another agent calls it",
            properties: &[
                ("name", "the session and the number of the run, and the calls that led to it: `20261116-1/2`"),
                ("agent", "the agent"),
                ("model", "the model"),
                ("outcome", "`answer`, `failed`, `cancelled` or `open`"),
                ("answer", "the answer"),
                ("error", "the message, if the run failed"),
                ("errorKind", "the kind of failure"),
                ("input", "the message of the user"),
                ("turns", "how many model calls it made"),
                ("calls", "how many tools it called"),
                ("inputTokens", "the tokens of its requests"),
                ("outputTokens", "the tokens of the replies"),
                ("cost", "the cost in dollars, if it is known"),
                ("at", "when it started, in seconds since 1970"),
            ],
        },
        LabelSchema {
            name: "Call",
            description: "a call of a tool",
            properties: &[
                ("name", "the id of the call"),
                ("tool", "the name of the tool, as the agent calls it"),
                ("args", "the arguments, as a record: `{ args: { amount: \"> 100\" } }`"),
                ("outcome", "`value`, `error`, `denied`, `cancelled` or `open`"),
                ("asked", "true if somebody was asked to approve it"),
                ("result", "the result"),
                ("error", "the message, if the call failed or was denied"),
                ("seconds", "how long it took"),
            ],
        },
        LabelSchema {
            name: "Tool",
            description: "a tool, by the name that the agent calls",
            properties: &[("name", "the name")],
        },
        LabelSchema { name: "Model", description: "a model", properties: &[("name", "the name")] },
    ],
    relations: &[
        RelationSchema {
            name: "has",
            description: "a session has a run",
            ends: &[("Session", "Run")],
            properties: &[],
        },
        RelationSchema {
            name: "started",
            description: "a call of another agent started a run",
            ends: &[("Call", "Run")],
            properties: &[],
        },
        RelationSchema { name: "made", description: "a run made a call", ends: &[("Run", "Call")], properties: &[] },
        RelationSchema {
            name: "of",
            description: "a call is a call of a tool",
            ends: &[("Call", "Tool")],
            properties: &[],
        },
        RelationSchema {
            name: "then",
            description: "what came next in the same session: a run, or a call",
            ends: &[("Run", "Run"), ("Call", "Call")],
            properties: &[],
        },
        RelationSchema {
            name: "served_by",
            description: "a run used a model",
            ends: &[("Run", "Model")],
            properties: &[],
        },
    ],
};
