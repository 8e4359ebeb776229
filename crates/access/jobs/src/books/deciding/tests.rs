//! What is left after decisions that fail in the middle.

use std::sync::Arc;
use std::time::Duration;

use forebay_scheduling::ScheduleSettings;
use forebay_types::OperationId;

use super::*;
use crate::books::Ended;
use crate::job::Cut;
use crate::ticket::Ticket;
use crate::word::TaskName;

const GOOD: &str = "0000000000000007-0000000000000001";
const BAD: &str = "0000000000000008-0000000000000002";

fn books() -> Books {
    let mut books = Books::new(ScheduleSettings::default());
    asks(&mut books, GOOD);
    books
}

/// The first task that an executor has.
fn name() -> TaskName {
    TaskName { job: "good".to_string(), stage: 1, attempt: 0, task: 0 }
}

fn asks(books: &mut Books, executor: &str) {
    books.decide("a question", Sender::Executor(executor), |books| books.executor_asks(executor, 2, Some(1 << 30)));
}

/// What a look at a job tells, which has so many partitions that wait.
fn looks(books: &mut Books, job: &str, attempt: usize, pending: &[usize]) -> bool {
    let looked = books.decide("a look", Sender::Job(job), |books| {
        books.job_seen(job, || Ticket::silent(OperationId(1)));
        if books.is_new_stage(job, 1, attempt) {
            books.stage_begins(job, 1, attempt, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        }
        books.waiting(job, 1, pending);
    });
    looked.is_some()
}

/// Runs the next task of a job to its end; whether there was one.
fn runs(books: &mut Books, executor: &str, attempt: usize, task: usize) -> Option<String> {
    let chosen = books.choose(executor)?;
    books.began(&chosen, attempt, task);
    let job = chosen.job.clone();
    let ended = Ended { job: &job, stage: 1, attempt, task, done: true, took: Duration::from_millis(1), bytes_passed: 1 };
    books.decide("an end", Sender::Job(&job), |books| books.ended(&ended));
    Some(job)
}

#[test]
fn a_look_that_fails_a_thousand_times_stops_no_other_job() {
    let mut books = books();
    assert!(looks(&mut books, "good", 0, &[]) && looks(&mut books, "bad", 0, &[]));
    fail_at(Some("waiting of bad"));
    for round in 0..1_000 {
        assert!(!looks(&mut books, "bad", round, &[0, 1]), "round {round}");
        assert!(looks(&mut books, "good", round, &[0, 1]), "round {round}");
        for task in 0..2 {
            assert_eq!(runs(&mut books, GOOD, round, task).as_deref(), Some("good"), "round {round}");
        }
        assert!(books.choose(GOOD).is_none(), "nothing is given of the one that failed");
    }
    let shown = books.shown();
    let bad = shown.iter().find(|job| job.id == "bad").unwrap();
    assert_eq!((bad.state.as_str(), bad.error.as_str(), shown.len()), ("failed", DEFECT, 2));
    let good = shown.iter().find(|job| job.id == "good").unwrap();
    assert_eq!((good.state.as_str(), good.tasks_done, good.tasks_running), ("running", 2_000, 0));
    assert!(books.is_refused("bad") && books.refused_jobs().len() == 1);
}

#[test]
fn what_was_half_made_of_one_job_costs_no_task_of_others() {
    let mut books = books();
    assert!(looks(&mut books, "good", 0, &[0, 1, 2, 3]));
    let running = books.choose(GOOD).unwrap();
    books.began(&running, 0, 0);
    fail_at(Some("waiting of bad"));
    assert!(!looks(&mut books, "bad", 0, &[0]));
    fail_at(None);
    assert!(books.runs(&name()), "who runs goes on");
    // Ballista says what waits, and each of it is given once.
    let waits: Vec<usize> = (0..4).filter(|partition| running.partitions != Some(vec![*partition])).collect();
    assert!(looks(&mut books, "good", 0, &waits));
    let mut given: Vec<usize> = std::iter::from_fn(|| {
        let chosen = books.choose(GOOD)?;
        let partition = chosen.partitions.as_ref().unwrap()[0];
        books.began(&chosen, 0, partition + 10);
        let ended =
            Ended { job: "good", stage: 1, attempt: 0, task: partition + 10, done: true, took: Duration::ZERO, bytes_passed: 0 };
        books.ended(&ended);
        Some(partition)
    })
    .collect();
    given.sort_unstable();
    assert_eq!(given, waits);
    assert!(!looks(&mut books, "bad", 0, &[0]), "it is over for good");
}

#[test]
fn a_task_that_fails_when_the_schedule_was_made_anew_is_given_again() {
    let mut books = books();
    assert!(looks(&mut books, "good", 0, &[0]));
    let running = books.choose(GOOD).unwrap();
    books.began(&running, 0, 0);
    fail_at(Some("waiting of bad"));
    assert!(!looks(&mut books, "bad", 0, &[0]));
    fail_at(None);
    books.ended(&Ended { job: "good", stage: 1, attempt: 0, task: 0, done: false, took: Duration::ZERO, bytes_passed: 0 });
    assert!(looks(&mut books, "good", 0, &[0]));
    assert_eq!(runs(&mut books, GOOD, 0, 1).as_deref(), Some("good"));
}

#[test]
fn an_executor_whose_question_fails_gets_no_task_and_others_do() {
    let mut books = books();
    fail_at(Some(&format!("question of {BAD}")));
    for round in 0..1_000 {
        asks(&mut books, BAD);
        asks(&mut books, GOOD);
        assert!(looks(&mut books, "good", round, &[0]));
        assert!(books.choose(BAD).is_none());
        assert_eq!(runs(&mut books, GOOD, round, 0).as_deref(), Some("good"), "round {round}");
    }
    assert!(!books.executors.contains_key(BAD));
}

#[test]
fn a_job_that_the_schedule_fails_on_is_found_and_ends() {
    let mut books = books();
    let poisoned = |books: &mut Books, number: Option<JobId>| {
        books.ask("a task", |schedule| {
            assert!(!schedule.jobs().any(|(id, ..)| Some(id) == number), "the schedule has it");
            schedule.jobs().count()
        })
    };
    for job in ["first", "bad", "last"] {
        assert!(looks(&mut books, job, 0, &[0]));
    }
    let number = Some(books.jobs["bad"].number);
    assert_eq!(poisoned(&mut books, number), None, "the first time it is only made anew");
    assert!(!books.is_refused("bad"));
    for job in ["first", "bad", "last"] {
        assert!(looks(&mut books, job, 0, &[0]));
    }
    assert_eq!(poisoned(&mut books, number), None);
    assert!(books.is_refused("bad") && !books.is_refused("first") && !books.is_refused("last"));
    for round in 0..1_000 {
        assert!(!looks(&mut books, "bad", round, &[0]));
        assert!(looks(&mut books, "first", round, &[0]) && looks(&mut books, "last", round, &[0]));
        assert_eq!(poisoned(&mut books, number), Some(2));
        assert!(runs(&mut books, GOOD, round, 0).is_some() && runs(&mut books, GOOD, round, 0).is_some(), "round {round}");
    }
}
