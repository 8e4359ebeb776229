//! `forebay simulate shards`.

use crate::support::forebay_in;

#[test]
fn a_spike_of_simulated_load_changes_no_layer_a_rise_does_and_a_loss_is_told_beside_other_ways() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| forebay_in(home.path(), &[&["simulate", "shards"], arguments].concat());
    let spike = run(&["--scenario", "spike", "--json"]).ok().json().remove(0);
    assert_eq!((spike["moves"].as_array().unwrap().len(), &spike["storage_end"]), (0, &spike["storage_start"]));
    let rise = run(&["--json", "--csv", "rise.csv", "--plot", "rise.svg"]).ok().json().remove(0);
    assert!(rise["storage_most"].as_f64() > rise["storage_start"].as_f64(), "{}", rise["moves"]);
    assert!(rise["adapted_secs"].as_f64().is_some_and(|secs| secs <= 300.0));
    assert!(std::fs::read_to_string(home.path().join("rise.csv")).unwrap().lines().count() > 100);
    assert!(std::fs::read_to_string(home.path().join("rise.svg")).unwrap().starts_with("<svg"));
    let repair = run(&["--scenario", "repair", "--json", "--plot", "repair.svg"]).ok().json();
    let ways: Vec<_> = repair.iter().map(|way| (way["way"].as_str().unwrap(), way["moved"].as_f64().unwrap())).collect();
    assert!(ways.len() == 8 && ways[0] == ("0.9x, 0.5x, 0.5x", 0.125) && ways[1].0.contains("Reed-Solomon"), "{ways:?}");
    assert!(std::fs::read_to_string(home.path().join("repair.svg")).unwrap().contains("three copies"));
    assert!(run(&["--scenario", "list"]).ok().text().contains("gradual"));
    for arguments in [["shards", "gradual"], ["getafix", "paper"]] {
        let listed = forebay_in(home.path(), &["simulate", arguments[0], "--scenario", "list", "--json"]).ok().json();
        assert!(listed.iter().any(|row| row["scenario"] == arguments[1] && row["what"].is_string()), "{listed:?}");
    }
    run(&["--scenario", "nothing"]).fails(1, &["nothing", "uniform"]);
    run(&["--routing", "nothing"]).fails(1, &["two-choices"]);
}
