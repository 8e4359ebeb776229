//! The table of rights for the ports of distributed SQL, whose calls are not in this project's words but in gRPC's.

use crate::{Need, Place};

/// Who gives queries to a scheduler, and asks for them and for their results, reads whatever a plan can name, temporary data too.
const READS: Need = Need::read(Place::Everything);

/// What a call of gRPC at a scheduler's port needs, by its path. `None`: nobody makes such a call, so nobody may.
pub fn scheduler(path: &str) -> Option<Need> {
    if let Some(method) = path.strip_prefix("/ballista.protobuf.SchedulerGrpc/") {
        return Some(match method {
            // What executors say: who says it decides what counts as a row of other people's answers.
            "PollWork" | "RegisterExecutor" | "HeartBeatFromExecutor" | "UpdateTaskStatus" | "ExecutorStopped" => Need::serve(),
            "ExecuteQuery"
            | "ExecuteQueryPush"
            | "GetJobStatus"
            | "GetJobMetrics"
            | "CancelJob"
            | "CreateUpdateSession"
            | "RemoveSession" => READS,
            // Takes away what jobs of others still read.
            "CleanJobData" => Need::administer(Place::Everything),
            _ => return None,
        });
    }
    match path.strip_prefix("/arrow.flight.protocol.FlightService/")? {
        // The questions of people: jobs, transfers, the cluster, the end of a job.
        "DoAction" | "ListActions" => Some(READS),
        _ => None,
    }
}

/// What a call of gRPC at an executor's port needs, by its path. `None`: nobody makes such a call, so nobody may.
pub fn executor(path: &str) -> Option<Need> {
    if let Some(method) = path.strip_prefix("/ballista.protobuf.ExecutorGrpc/") {
        return match method {
            // What the scheduler says.
            "LaunchTask" | "LaunchMultiTask" | "StopExecutor" | "CancelTasks" | "RemoveJobData" => Some(Need::serve()),
            _ => None,
        };
    }
    match path.strip_prefix("/arrow.flight.protocol.FlightService/")? {
        // How clients fetch results, and executors from each other what passes between stages: as bytes, which nobody here decodes.
        "DoAction" => Some(READS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{Grant, Role, Scope};

    use super::*;

    #[test]
    fn no_call_is_open_that_is_not_in_the_list() {
        for path in [
            "",
            "/",
            "PollWork",
            "/ballista.protobuf.SchedulerGrpc",
            "/ballista.protobuf.SchedulerGrpc/",
            "/ballista.protobuf.SchedulerGrpc/pollwork",
            "/ballista.protobuf.SchedulerGrpc/PollWork/",
            "/ballista.protobuf.SchedulerGrpc/New",
            "/arrow.flight.protocol.FlightService/DoPut",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        ] {
            assert_eq!((scheduler(path), executor(path)), (None, None), "{path}");
        }
        assert_eq!(executor("/ballista.protobuf.SchedulerGrpc/PollWork"), None, "each port has its own calls");
        assert_eq!(scheduler("/ballista.protobuf.ExecutorGrpc/CancelTasks"), None);
    }

    #[test]
    fn who_may_not_read_temporary_data_gives_nobody_a_query() {
        let scope = Scope::Only { mounts: vec!["lake".parse().expect("a name")], temporary: false };
        let some = Grant { scope, ..Grant::everywhere(Role::Admin) };
        let gives = |grant: &Grant| crate::grants(grant, &READS, 0, |_| None);
        assert!(!gives(&some) && gives(&Grant::everywhere(Role::Read)));
    }

    #[test]
    fn an_executor_hands_out_bytes_to_who_reads_and_decodes_for_nobody() {
        let of = |method: &str| executor(&format!("/arrow.flight.protocol.FlightService/{method}"));
        assert_eq!(of("DoAction"), Some(READS));
        for method in
            ["DoGet", "DoExchange", "GetFlightInfo", "GetSchema", "Handshake", "ListActions", "ListFlights", "PollFlightInfo"]
        {
            assert_eq!(of(method), None, "{method}");
        }
    }

    #[test]
    fn what_processes_of_the_cluster_say_is_for_them_alone() {
        for method in ["PollWork", "RegisterExecutor", "HeartBeatFromExecutor", "UpdateTaskStatus", "ExecutorStopped"] {
            assert_eq!(scheduler(&format!("/ballista.protobuf.SchedulerGrpc/{method}")), Some(Need::serve()), "{method}");
        }
        for method in ["LaunchTask", "LaunchMultiTask", "StopExecutor", "CancelTasks", "RemoveJobData"] {
            assert_eq!(executor(&format!("/ballista.protobuf.ExecutorGrpc/{method}")), Some(Need::serve()), "{method}");
        }
    }
}
