//! Observations that the model keeps.

/// Chooses at most `most` observations: the last of each of the best trials and of an even sample of the others, then
/// earlier ones of the best trials. `trials` has the trial of each observation, `ranked` the trials, the best first.
pub(super) fn select(trials: &[usize], ranked: &[usize], most: usize) -> Vec<usize> {
    if trials.len() <= most {
        return (0..trials.len()).collect();
    }
    let (best, others) = ranked.split_at(ranked.len().min(most / 2));
    let sampled = others.len().min(most / 4);
    let others = (0..sampled).map(|i| others[i * others.len() / sampled]);
    let mut rank = vec![None; trials.iter().max().map_or(0, |last| last + 1)];
    for (i, number) in best.iter().copied().chain(others).enumerate() {
        rank[number] = Some(i);
    }
    let mut is_seen = vec![false; rank.len()];
    let newest_first = trials.iter().enumerate().rev();
    let mut known: Vec<(bool, usize, usize)> = newest_first
        .filter_map(|(row, &trial)| {
            let is_earlier = std::mem::replace(&mut is_seen[trial], true);
            Some((is_earlier, rank[trial]?, row))
        })
        .collect();
    known.sort_by_key(|&(is_earlier, rank, _)| (is_earlier, rank));
    let mut kept: Vec<usize> = known.into_iter().take(most).map(|(_, _, row)| row).collect();
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_observations_are_all_kept() {
        assert_eq!(select(&[0, 1, 0, 2], &[2, 0, 1], 4), [0, 1, 2, 3]);
    }

    #[test]
    fn the_best_trials_keep_their_curves_and_others_their_last_observation() {
        // Three observations of each of 40 trials, of which the last is the best.
        let trials: Vec<usize> = (0..120).map(|row| row % 40).collect();
        let ranked: Vec<usize> = (0..40).rev().collect();
        let kept = select(&trials, &ranked, 20);
        assert_eq!(kept.len(), 20);
        assert!(kept.is_sorted());
        let of = |trial: usize| kept.iter().filter(|&&row| trials[row] == trial).count();
        assert_eq!((of(39), of(38), of(30)), (3, 3, 1));
        let others = (0..30).filter(|&trial| of(trial) > 0).count();
        assert_eq!(others, 5);
        assert!((0..30).all(|trial| of(trial) == 0 || kept.contains(&(80 + trial))));
    }
}
