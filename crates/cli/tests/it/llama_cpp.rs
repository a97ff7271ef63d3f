//! A model on a server that is not ours: the one of llama.cpp.

use crate::folder::Folder;
use crate::python::installed;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct LlamaServer {
    process: Child,
    address: String,
}

impl LlamaServer {
    fn start() -> Option<Self> {
        let python = installed("llama-cpp")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama-cpp/server.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.ok().filter(|line| line.starts_with("http://"))).unwrap();
        Some(Self { process, address })
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_model_of_llama_cpp_runs_chats_and_is_evaluated() {
    let Some(server) = LlamaServer::start() else { return };
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[a:Agent { instruction: 'Answer briefly.', model: 'llama.cpp/smollm2', maxTokens: 400, temperature: 0.0 }]\n",
    );
    folder.write("cases.jsonl", "{\"id\": \"hi\", \"input\": \"Say hi\", \"checks\": [{\"matches\": \".\"}]}\n");
    let patter = |arguments: &[&str], stdin: &str| {
        let input = folder.write("stdin", stdin);
        let mut command = folder.command();
        command.env("LLAMACPP_BASE_URL", format!("{}/v1", server.address)).args(arguments);
        let output = command.stdin(std::fs::File::open(input).unwrap()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stdout}{stderr}");
        (stdout, stderr)
    };
    let list = patter(&["models", "--provider", "llama.cpp", "--live"], "").0;
    assert!(list.contains("SmolLM2-135M-Instruct"), "{list}");
    for api in ["chat", "responses"] {
        folder.write("patter.toml", format!("[models.'llama.cpp']\napi = '{api}'\n"));
        let (whole, _) = patter(&["run", "a.gram", "Say hi", "--store", "none", "--format", "json"], "");
        let whole: Json = serde_json::from_str(&whole).unwrap();
        let count = |name: &str| whole["usage"][name].as_u64().unwrap();
        assert!(count("input_tokens") > 0 && (1..=400).contains(&count("output_tokens")), "{api}: {whole}");
        let content = whole["content"].as_str().unwrap().trim();
        assert!(!content.is_empty(), "{api}: {whole}");
        // Streamed, the answer and the counts are the same.
        let (text, summary) = patter(&["run", "a.gram", "Say hi", "--store", "none"], "");
        assert_eq!(text.trim(), content, "{api}");
        assert!(summary.contains("1 model call") && summary.contains("tokens"), "{api}: {summary}");
        let (answers, _) = patter(&["chat", "a.gram", "--store", "none"], "Say hi\nAnd now goodbye\n");
        assert!(answers.starts_with(content), "{api}: {answers}");
        let (report, _) = patter(&["eval", "a.gram", "--cases", "cases.jsonl", "--store", "none"], "");
        assert!(report.contains("passed 1 of 1"), "{api}: {report}");
    }
}
