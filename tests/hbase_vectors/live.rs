//! Scripts that nobody has recorded: made by the oracle's generator, run on HBase and on the engine at once.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Seconds of processor time after which HBase counts as looping (CELLFS_ORACLE_LIMIT).
const LIMIT: &str = "3";

/// What HBase made of a script.
pub enum Recorded {
    /// The script with HBase's results.
    Script(String),
    /// HBase never ends on it: the script up to there.
    Endless(String),
}

/// One HBase, for one script after another.
pub struct Oracle {
    folder: PathBuf,
    running: Option<Running>,
}

struct Running {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// The oracle in a folder; HBase starts with the first script.
    pub fn new(folder: &Path) -> Oracle {
        Oracle { folder: folder.to_path_buf(), running: None }
    }

    /// Makes the script of `seed` and lets HBase run it.
    pub fn record(&mut self, seed: u64) -> Result<Recorded, String> {
        let script = self.script(seed)?;
        self.run(&script)
    }

    /// The same with one block per file and without a codec. HBase 2.6.4 has answers that depend on where a block ends (see docs/hbase.md), and
    /// the order of a bulk load and a flush depends on how small a codec makes a file.
    pub fn record_plain(&mut self, seed: u64) -> Result<Recorded, String> {
        let mut script = self.script(seed)?;
        for codec in ["GZ", "SNAPPY", "ZSTD", "LZ4"] {
            script = script.replace(&format!("\"COMPRESSION\":\"{codec}\""), "\"COMPRESSION\":\"NONE\"");
        }
        self.run(&script.replace("\"BLOCKSIZE\":\"1024\"", "\"BLOCKSIZE\":\"65536\""))
    }

    fn script(&self, seed: u64) -> Result<String, String> {
        let generator = Command::new("python3")
            .arg(self.folder.join("generate.py"))
            .args(["script", "--seed", &seed.to_string()])
            .output()
            .map_err(|error| format!("python3: {error}"))?;
        if !generator.status.success() {
            return Err(format!("generate.py: {}", String::from_utf8_lossy(&generator.stderr)));
        }
        Ok(String::from_utf8_lossy(&generator.stdout).into_owned())
    }

    fn run(&mut self, script: &str) -> Result<Recorded, String> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        if running.ask("{\"op\":\"reset\"}")?.is_none() {
            return Err("the oracle ended before the script".to_owned());
        }
        let mut recorded = String::new();
        for line in script.lines() {
            let Some(result) = running.ask(line)? else {
                return match running.process.wait().map(|status| status.code()) {
                    Ok(Some(3)) => Ok(Recorded::Endless(recorded)),
                    other => Err(format!("the oracle ended with {other:?}")),
                };
            };
            let operation = line.strip_suffix('}').unwrap_or(line);
            recorded += &format!("{operation},\"result\":{}}}\n", result.trim_end());
        }
        self.running = Some(running);
        Ok(Recorded::Script(recorded))
    }

    fn start(&self) -> Result<Running, String> {
        let mut command = Command::new(self.folder.join("oracle"));
        command.arg("region").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if std::env::var_os("CELLFS_ORACLE_LIMIT").is_none() {
            command.env("CELLFS_ORACLE_LIMIT", LIMIT);
        }
        let mut process = command.spawn().map_err(|error| format!("the oracle: {error}"))?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(input), Some(output)) => Ok(Running { process, input, output: BufReader::new(output) }),
            _ => Err("the oracle has no input or output".to_owned()),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        if let Some(Running { mut process, input, .. }) = self.running.take() {
            drop(input);
            let _ended = process.wait();
        }
    }
}

impl Running {
    /// Sends a line; `None` if HBase ended instead of answering.
    fn ask(&mut self, line: &str) -> Result<Option<String>, String> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        if sent.is_err() {
            return Ok(None);
        }
        let mut answer = String::new();
        let read = self.output.read_line(&mut answer).map_err(|error| format!("the oracle: {error}"))?;
        Ok((read > 0).then_some(answer))
    }
}
