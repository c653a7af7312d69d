//! What the steps so far have brought: variables, outputs and their status.

use agent_config::pipeline::Step;
use agent_config::pipeline::expression::StepState;
use agent_config::pipeline::variables::Variables;
use agent_core::stop_reason::Status;
use agent_core::work::WorkRun;
use std::collections::BTreeMap;

/// Maximum bytes of an output that is the value of a variable.
pub const MAX_VALUE_BYTES: usize = 64 << 10;

/// The steps so far.
#[derive(Default)]
pub struct Outputs {
    /// The variables.
    pub variables: Variables,
    /// The steps by name.
    pub steps: BTreeMap<String, StepState>,
    /// Whether a step failed.
    pub has_failed: bool,
}

impl Outputs {
    /// Adds an ended step with its last run. Returns the bytes of its output if its variable has only the first ones.
    pub fn add(&mut self, step: &Step, run: &WorkRun) -> Option<usize> {
        let status = status(run);
        self.has_failed |= !["success", "skipped"].contains(&status);
        let output = run.result.output.text();
        let (whole, kept) = (output.len(), output.floor_char_boundary(MAX_VALUE_BYTES));
        // A value is an environment variable of commands too.
        let output = output.get(..kept).unwrap_or_default().replace('\0', "");
        let is_variable = step.output_var.is_some() && run.skipped.is_none();
        if let Some(name) = step.output_var.as_ref().filter(|_| is_variable) {
            self.variables.insert(name.clone(), output.clone());
        }
        self.steps.insert(step.name.clone(), StepState { status, output });
        (is_variable && kept < whole).then_some(whole)
    }
}

fn status(run: &WorkRun) -> &'static str {
    let has_failed_check = run.checks.iter().any(|check| !check.passed);
    match run.result.status {
        _ if run.skipped.is_some() => "skipped",
        Status::Success if has_failed_check => Status::Partial.name(),
        status => status.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::quality_gate::GateResult;
    use agent_core::run_result::RunResult;

    fn run(output: &str) -> WorkRun {
        let result = RunResult { status: Status::Success, output: output.into(), ..RunResult::default() };
        WorkRun { result, ..WorkRun::default() }
    }

    fn step() -> Step {
        Step { name: "a".to_owned(), output_var: Some("x".to_owned()), ..Step::default() }
    }

    #[test]
    fn a_long_output_is_cut_between_characters_and_said() {
        let mut outputs = Outputs::default();
        let long = "é".repeat(MAX_VALUE_BYTES);
        assert_eq!(outputs.add(&step(), &run(&format!("x{long}"))), Some(2 * MAX_VALUE_BYTES + 1));
        assert_eq!(outputs.variables["x"].len(), MAX_VALUE_BYTES - 1);
        assert_eq!(outputs.add(&step(), &run("a\0b")), None);
        assert_eq!(outputs.variables["x"], "ab");
    }

    #[test]
    fn a_skipped_step_sets_no_variable_and_a_failed_check_is_no_success() {
        let mut outputs = Outputs::default();
        outputs.add(&step(), &WorkRun { skipped: Some("why".to_owned()), ..run("") });
        assert_eq!((outputs.steps["a"].status, outputs.has_failed), ("skipped", false));
        assert!(outputs.variables.is_empty());
        let (name, output) = (String::new(), String::new());
        let check = GateResult { name, required: true, passed: false, output, duration_ms: 1 };
        outputs.add(&step(), &WorkRun { checks: vec![check], ..run("y") });
        assert_eq!((outputs.steps["a"].status, outputs.has_failed), ("partial", true));
    }
}
