use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use surefoot_diagnose::*;
use surefoot_plan::Plan;
use surefoot_record::*;
use surefoot_train::{Cpu, Progress, Run, Watcher};
use surefoot_zoo::*;

struct Quiet;
impl Watcher for Quiet {
    fn step(&mut self, _: &Progress) {}
    fn evaluated(&mut self, _: &Evaluation) {}
    fn interrupted(&self) -> bool {
        false
    }
}

fn npy(path: &Path, shape: &[usize], dtype: &str, bytes: &[u8]) {
    let dims = shape.iter().map(|d| format!("{d},")).collect::<String>();
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({dims}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(bytes);
    std::fs::write(path, out).unwrap();
}

fn spoil(plan: &mut Plan, s: Spoiled, dir: &Path, number: u64, seed: u64) {
    std::fs::create_dir_all(dir).unwrap();
    let mut raw = plan.data.clone();
    raw.split = surefoot_plan::Split {
        validation: 0.0,
        test: 0.0,
    };
    let data = surefoot_data::load(&raw, plan.seed, Path::new(".")).unwrap();
    let key = surefoot_random::Key::new(number, surefoot_random::Purpose::Noise);
    let mut f = data.train.features.clone();
    for (i, v) in f.iter_mut().enumerate() {
        *v = (f64::from(*v) * s.factor + s.offset) as f32;
        if s.outliers > 0.0 && key.bernoulli(i as u64, s.outliers) {
            *v *= 1e4;
        }
    }
    let (fp, lp) = (
        dir.join(format!("f{number}-{seed}.npy")),
        dir.join(format!("l{number}-{seed}.npy")),
    );
    let mut shape = vec![data.train.len];
    shape.extend(&data.input_shape);
    npy(
        &fp,
        &shape,
        "<f4",
        &f.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
    );
    match &data.train.targets {
        surefoot_data::Targets::Classes(c) => npy(
            &lp,
            &[c.len()],
            "<i8",
            &c.iter()
                .flat_map(|&v| i64::from(v).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
        surefoot_data::Targets::Values(v) => npy(
            &lp,
            &[v.len()],
            "<f4",
            &v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
        ),
    }
    plan.data.task = Some(data.task);
    plan.data.source = surefoot_plan::Source::Npy {
        features: fp,
        labels: lp,
    };
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (mode, seed, count, dir) = (
        &args[1],
        args[2].parse::<u64>().unwrap(),
        args[3].parse::<u64>().unwrap(),
        PathBuf::from(&args[4]),
    );
    let zoo = cases(seed, count);
    let next = AtomicUsize::new(0);
    let jobs: Vec<(usize, u64, bool)> = zoo
        .iter()
        .enumerate()
        .flat_map(|(i, c)| {
            (1..=3u64).flat_map(move |s| {
                let mut v = vec![(i, s, false)];
                if c.injected.is_some() {
                    v.push((i, s, true));
                }
                v
            })
        })
        .collect();
    let out = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= jobs.len() {
                        break;
                    }
                    let (i, s, faulty) = jobs[k];
                    let case = &zoo[i];
                    let name = format!(
                        "{:03}-{}-{}",
                        case.number,
                        if faulty { "f" } else { "t" },
                        s
                    );
                    let path = dir.join(format!("{name}-001"));
                    if mode == "train" {
                        let mut plan = if faulty {
                            case.injected.as_ref().unwrap().plan.clone()
                        } else {
                            case.twin.clone()
                        };
                        plan.seed = s;
                        plan.training.shards = Some(1);
                        if faulty && let Some(sp) = case.injected.as_ref().unwrap().spoiled {
                            spoil(&mut plan, sp, &dir.join("data"), case.number, s);
                        }
                        let begun = std::time::Instant::now();
                        let data = match surefoot_data::load(&plan.data, plan.seed, Path::new("/"))
                        {
                            Ok(d) => d,
                            Err(e) => {
                                eprintln!("{name}: {e}");
                                continue;
                            }
                        };
                        let mut run =
                            match Run::<Cpu>::new(&plan, &data, &[], 1, Default::default()) {
                                Ok(r) => r,
                                Err(e) => {
                                    eprintln!("{name}: {e}");
                                    continue;
                                }
                            };
                        let outline = run.outline();
                        let header = Header {
                            facts: outline.facts.clone(),
                            observe_every: outline.rhythm.every.unwrap_or(0),
                            ..Header::default()
                        };
                        let mut rec =
                            Recorder::create(&dir, &name, &plan.to_toml(), header).unwrap();
                        let report = run.train(&mut rec, &mut Quiet).unwrap();
                        let summary = RunSummary {
                            status: Status::Normal,
                            problems: vec![],
                            remedies: vec![],
                            metric: MetricSummary {
                                name: "m".into(),
                                before: report.last.as_ref().and_then(|l| l.metric),
                                after: report.best.as_ref().and_then(|b| b.metric),
                            },
                            steps: report.steps,
                            seconds: begun.elapsed().as_secs_f64(),
                            digest: report.digest,
                            run: String::new(),
                        };
                        rec.finish(&summary).unwrap();
                        if k % 100 == 0 {
                            eprintln!("{k}/{} {name}", jobs.len());
                        }
                    } else {
                        let Ok(run) = surefoot_record::Run::open(&path) else {
                            continue;
                        };
                        let Ok(Some(summary)) = run.summary() else {
                            continue;
                        };
                        let facts = run.header().facts.clone();
                        let total = facts.total_steps().unwrap_or(1);
                        let mut d = Diagnosis::new(facts, Thresholds::default());
                        let evals = run.evaluations().unwrap();
                        let mut e = evals.iter().peekable();
                        for o in run.observations().unwrap() {
                            let o = o.unwrap();
                            d.observe(&o);
                            while let Some(ev) = e.next_if(|ev| ev.step <= o.step) {
                                d.evaluate(ev);
                            }
                        }
                        d.finish();
                        if mode == "dump" {
                            use std::fmt::Write;
                            let mut text = String::new();
                            let mut d = Diagnosis::with(
                                run.header().facts.clone(),
                                Thresholds::default(),
                                vec![],
                            );
                            let infos = run.header().facts.layers.clone();
                            let mut n = 0;
                            let mut rms = 0.0;
                            for o in run.observations().unwrap() {
                                let o = o.unwrap();
                                if let Some(i) = &o.input {
                                    rms = (i.mean * i.mean + i.variance).sqrt();
                                }
                                d.observe(&o);
                                let c = d.curve();
                                if c.blocks().len() > n {
                                    n = c.blocks().len();
                                    let b = c.blocks()[n - 1];
                                    let f = |v: Option<f64>| {
                                        v.map_or("nan".to_string(), |v| format!("{v:.4e}"))
                                    };
                                    let mut ls = String::new();
                                    if let Some(layers) = c.last_layers() {
                                        for (i, l) in layers.iter().enumerate() {
                                            if l.gradient.is_some() {
                                                let _ = write!(
                                                    ls,
                                                    "{}:{}:{}:{}:{}:{}:{};",
                                                    infos[i].kind,
                                                    f(l.gradient),
                                                    f(l.gradient_rms),
                                                    f(l.update_ratio),
                                                    f(l.dead),
                                                    f(l.saturated),
                                                    f(l.output)
                                                );
                                            }
                                        }
                                    }
                                    let _ = writeln!(
                                        text,
                                        "{}\t{:.4}\t{:.5e}\t{:.5e}\t{}\t{}\t{:.3e}\t{}",
                                        b.last,
                                        b.last as f64 / total as f64,
                                        b.loss,
                                        b.loss_spread,
                                        f(b.metric),
                                        f(b.skill),
                                        rms,
                                        ls
                                    );
                                }
                            }
                            std::fs::write(dir.join(format!("{name}.tsv")), text).unwrap();
                        }
                        let found: Vec<String> = d
                            .findings()
                            .iter()
                            .filter(|f| f.severity == Severity::Problem)
                            .map(|f| format!("{}@{:.3}", f.problem, f.step as f64 / total as f64))
                            .collect();
                        let remarks: Vec<String> = d
                            .findings()
                            .iter()
                            .filter(|f| f.severity == Severity::Remark)
                            .map(|f| format!("{}@{:.3}", f.problem, f.step as f64 / total as f64))
                            .collect();
                        if mode == "show" {
                            let b = d.curve().blocks();
                            let pts: Vec<String> = b
                                .iter()
                                .step_by((b.len() / 20).max(1))
                                .map(|b| {
                                    format!("{:.3}/{:.2}", b.loss, b.skill.unwrap_or(f64::NAN))
                                })
                                .collect();
                            println!(
                                "{} {:?} {:?}\n  {}\n {:?}",
                                name,
                                case.habitat,
                                case.injected
                                    .as_ref()
                                    .filter(|_| faulty)
                                    .map(|i| (i.fault, i.degree)),
                                pts.join(" "),
                                d.findings()
                            );
                        }
                        out.lock().unwrap().push((
                            case.number,
                            s,
                            faulty,
                            summary.metric.before,
                            summary.metric.after,
                            summary.seconds,
                            found,
                            remarks,
                        ));
                    }
                }
            });
        }
    });
    let mut rows = out.into_inner().unwrap();
    rows.sort_by_key(|a| (a.0, a.2, a.1));
    if mode == "diag" {
        for (n, s, faulty, last, best, secs, found, remarks) in rows {
            let case = &zoo[n as usize];
            let inj = case.injected.as_ref();
            println!(
                "{n}\t{s}\t{}\t{}\t{}\t{:.4}\t{:.4}\t{:.2}\t{}\t{}",
                case.habitat.name(),
                if faulty {
                    format!("{:?}", inj.unwrap().fault)
                } else {
                    "-".into()
                },
                if faulty {
                    format!("{:?}", inj.unwrap().degree)
                } else {
                    "-".into()
                },
                last.unwrap_or(f64::NAN),
                best.unwrap_or(f64::NAN),
                secs,
                found.join(","),
                remarks.join(",")
            );
        }
    }
}
