(* That the theorems are about something: for each of them numbers, scores and neighbors that
   satisfy everything it asks for. Where real numbers are needed, what is asked of them is shown to
   be what real numbers have.

   Page: docs/proofs/machine-checked.md ("Not empty"). *)
From Privmax Require Import Prelude Definitions Scores Exponential Composition
  RestrictedExponential.
From Privmax Require Import LimitedDomain NestedMargin NoisyMaximum AboveThreshold
  LargeMargin GapTest.
From Privmax Require Import SetMargin Groups NoisyCounts Projections KeyRounds RankedMargin
  SharedNoise AdditiveFit Repetition.

(* Four candidates; in the second data one record more was counted for the first of them. *)
Notation four := [finType of 'I_4].
Definition lead (n : int) : four -> int := fun i => if i == ord0 then n else 0.

Lemma four_candidates : #|four| = 4%N. Proof. exact: card_ord. Qed.

Example neighbors_exist n : lead n <> lead (n + 1) /\ add_remove (lead n) (lead (n + 1)) /\
  replace (lead n) (lead (n + 1)) /\ drift 1 (lead n) (lead (n + 1)) /\
  grows 1 (lead n) (lead (n + 1)).
Proof.
have ar : add_remove (lead n) (lead (n + 1)).
  by left=> i; rewrite /lead; case: ifP => _; rewrite ?lexx ?ler_addl.
split; last split=> //; last split; last split.
- move/(congr1 (fun q => q ord0)); rewrite /lead eqxx => /eqP.
  by rewrite -[X in X == _]addr0 (inj_eq (addrI n)).
- exact: add_remove_replace.
- exact: add_remove_drift.
apply: (@leq_trans #|[set (ord0 : four)]|); last by rewrite cards1.
apply: subset_leq_card; apply/subsetP => i; rewrite !inE /lead.
by case: (i == ord0); rewrite ?eqxx.
Qed.

(* A pair of neighbors is one in both directions, so privacy is asked both ways. *)
Example both_directions (I : finType) (s c : int) (n : nat) (q q' : I -> int) :
  (replace_by s q q' -> replace_by s q' q) /\ (add_remove q q' -> add_remove q' q) /\
  (drift c q q' -> drift c q' q) /\ (grows n q q' -> grows n q' q).
Proof.
split; first exact: replace_by_sym.
split; first by case; [right | left].
split; first exact: drift_sym.
by rewrite /grows (_ : touched q' q = touched q q') //; apply/setP => i; rewrite !inE eq_sym.
Qed.

(* The first is the best, and the rest are n behind. *)
Lemma lead_first n : 0 <= n -> rank (lead n) ord0 = 0%N.
Proof.
move=> n0; rewrite rank_card; apply: eq_card0 => j; rewrite !inE; apply/negbF.
rewrite /before /lead eqxx; case: eqP => [->|_]; first by rewrite eqxx leqnn orbT.
by move: n0; rewrite le_eqVlt => /orP[/eqP<-|-> //]; rewrite ltxx eqxx !enum_rank_ord.
Qed.

Lemma lead_stats n : 0 <= n -> stat (lead n) 0 = n /\ stat (lead n) 1 = 0.
Proof.
move=> n0; have e := lead_first n0; split.
  by have := stat_rank (lead n) ord0; rewrite e /lead eqxx.
rewrite (stat_nth _ ord0) ?four_candidates // /lead ifN //; apply/eqP => e'.
have lt : (1 < #|four|)%N by rewrite four_candidates.
by have := rank_nth (lead n) ord0 lt; rewrite e' e.
Qed.

(* Numbers: t = 2 stands for e^(epsilon/c), delta = 1/100. *)
Definition two : rat := 2%:R.
Definition hundredth : rat := 100%:R^-1.

Lemma two_ge1 : 1 <= two. Proof. by []. Qed.

Example exponential_example : private (@add_remove four) (exponential two) two 0.
Proof. by apply: exponential_add_remove => //; rewrite four_candidates. Qed.

Example exponential_replace_example : private (@replace four) (exponential two) (two ^+ 2) 0.
Proof. by apply: exponential_replace => //; rewrite four_candidates. Qed.

Example composition_example : private (@add_remove four)
  (compose (exponential two) (fun=> exponential two)) (two * two) (0 + 0).
Proof.
have law q : is_law (@exponential _ four two q) by apply: exponential_law; rewrite ?four_candidates.
by apply: basic_composition => //; move=> *; apply: exponential_example.
Qed.

(* The margin is there for a lead of 10. *)
Example restricted_example : has_margin two 1 1 hundredth (lead 10) /\
  close (restricted two 1 (lead 10)) (restricted two 1 (lead 11)) (two ^ 1) hundredth.
Proof.
have [s0 s1] := lead_stats (isT : (0 : int) <= 10).
have margin : has_margin two 1 1 hundredth (lead 10).
  by rewrite /has_margin /gap s0 s1 subr0.
have [_ [_ [_ [nb _]]]] := neighbors_exist 10; split; first exact: margin.
by apply: (proj1 (restricted_exponential_close _ _ _ nb margin)); rewrite ?four_candidates.
Qed.

Example limited_domain_example :
  private (@drift four 1) (limited_domain two 1 2 hundredth) (two ^ 1) hundredth.
Proof. by apply: limited_domain_private; rewrite ?four_candidates. Qed.

Example limited_domain_growth_example :
  private (fun q q' : four -> int => drift 1 q q' /\ grows 1 q q')
    (fun q => guarded two q 2 (guard two 1 2 hundredth (minn 2 1) q)) (two ^ 1) hundredth.
Proof. by apply: limited_domain_growth; rewrite ?four_candidates. Qed.

Example limited_domain_clipped_example :
  private (fun q q' : four -> int => drift 1 q q' /\ grows 1 q q')
    (limited_domain_clipped two 1 2 hundredth 30 0 1) (two ^ 1) hundredth.
Proof. by apply: limited_domain_clipped_private; rewrite ?four_candidates. Qed.

(* Ranks 1 and 4: the last one is everybody, and has no guard. *)
Definition ranks (j : 'I_2) : nat := if j == ord0 then 1%N else 4%N.
Definition deltas (j : 'I_2) : rat := if j == ord0 then hundredth else 0.

Lemma ranks_fit j : [/\ (0 < ranks j)%N, (ranks j <= 4)%N, 0 <= deltas j &
  (ranks j < #|four|)%N -> 0 < deltas j].
Proof. by rewrite four_candidates /ranks /deltas; case: ifP. Qed.

Example nested_margin_example : private (@drift four 1)
  (nested_margin two 1 ranks 4 deltas 2%:R^-1) (two ^ 1 / (1 - 2%:R^-1)) (\sum_j deltas j).
Proof.
apply: nested_margin_private; rewrite ?four_candidates // => j; case: (ranks_fit j) => //.
by rewrite four_candidates.
Qed.

Example nested_margin_growth_example :
  private (fun q q' : four -> int => drift 1 q q' /\ grows 1 q q')
    (nested_margin_growth two 1 ranks 4 deltas 2%:R^-1 30 1)
    (two ^ 1 / (1 - 2%:R^-1)) (\sum_j deltas j).
Proof.
apply: nested_margin_growth_private; rewrite ?four_candidates // => j; case: (ranks_fit j) => //.
by rewrite four_candidates.
Qed.

Example noisy_maximum_example :
  countably_private (@add_remove four) (@noisy_maximum _ two^-1 four) two^-1^-1 0.
Proof. by apply: noisy_maximum_add_remove; rewrite ?four_candidates. Qed.

Example gap_test_example : private (@drift four 1) (gap_test two hundredth 1 1) two hundredth.
Proof. by apply: gap_test_private; rewrite ?four_candidates. Qed.

(* Some values, for tests/exact/test_formal.py: its laws in Python must have the same. *)
Lemma lead_total n : \sum_i weight two (lead n) i = two ^ n + 3%:R.
Proof. by rewrite !big_ord_recl big_ord0. Qed.

Lemma lead_top n : 0 <= n -> top (lead n) 1 = [set ord0].
Proof.
move=> n0; apply/eqP; rewrite eq_sym eqEcard card_top ?four_candidates // cards1 leqnn andbT.
by apply/subsetP => i; rewrite !inE => /eqP->; rewrite lead_first.
Qed.

Example exponential_value : exponential two (lead 1) ord0 = 2%:R / 5%:R.
Proof. by rewrite /exponential lead_total. Qed.

Example limited_domain_value :
  limited_domain two 1 1 hundredth (lead 3) (Some ord0) = 26%:R^-1 /\
  limited_domain two 1 1 hundredth (lead 3) None = 25%:R / 26%:R.
Proof.
have [_ s1] := lead_stats (isT : (0 : int) <= 3).
have sum : \sum_(i in top (lead 3) 1) weight two (lead 3) i = 8%:R.
  by rewrite lead_top // big_set1.
by rewrite /limited_domain /guarded /total /guard sum s1 lead_top // inE.
Qed.

Example chance_values : chance two hundredth 2 = 3%:R / 100%:R /\
  soft_chance 4%:R two hundredth 2 = 5%:R / 100%:R.
Proof. by []. Qed.

Example laplace_values : laplace two^-1 1 = 6%:R^-1 /\ laplace_cdf two^-1 1 = 5%:R / 6%:R.
Proof. by []. Qed.

(* The gap test is one of the mechanisms that it is the best of. *)
Example gap_test_competes_example : competitor two hundredth 1 true (gap_test two hundredth 1 1)
  (@add_remove four).
Proof. by apply: gap_test_competes; rewrite ?four_candidates // => q q' /add_remove_drift. Qed.

(* Two stages: the test of the best one at e^epsilon = 4, which leaves 2; then a draw of one of the
   best two, or of all. *)
Example set_margin_example
    (s := [:: Test 1 4%:R two hundredth; Draw 1 2 1 1 id two 1 two hundredth]) :
  private (@drift four 1) (@set_margin _ four 1 s) 4%:R (losses (@loss _) s).
Proof.
apply: set_margin_private => //=; rewrite four_candidates; split; first by [].
split; last by [].
by split=> //; split=> // y y0; rewrite expr1.
Qed.

Example set_margin_closed_example (s := [:: Test 1 4%:R two hundredth; Whole 1 two 1]) :
  private (@drift four 1) (@set_margin _ four 1 s) 4%:R (losses (@loss _) s).
Proof. by apply: set_margin_private => //=; rewrite four_candidates. Qed.

(* Two individuals, whose rows name one of two groups each; each counts in the group of its first
   row. The best of a group is drawn from the number of individuals that count in it. *)
Definition first_group (rows : seq bool) : {set [finType of bool]} :=
  if rows is c :: _ then [set c] else set0.
Definition best_of_group (d : {ffun 'I_2 -> seq bool}) : four -> rat :=
  exponential two (lead (people d)).
Definition alone : {ffun 'I_2 -> seq bool} :=
  [ffun u => if u == ord0 then [:: true; false] else [::]].
Definition both : {ffun 'I_2 -> seq bool} := [ffun u => [:: true; false]].

Lemma first_group_one rows : (#|first_group rows| <= 1)%N.
Proof. by case: rows => [|c rows]; rewrite ?cards0 ?cards1. Qed.

Lemma best_of_group_law d : is_law (best_of_group d).
Proof. by apply: exponential_law; rewrite ?four_candidates. Qed.

Lemma best_of_group_private : private (@one_more _ _) best_of_group two 0.
Proof.
move=> d d' nb; apply: exponential_example.
case: (people_one_more nb) => ->; [left | left | right] => i;
  rewrite /lead; case: ifP; rewrite ?lexx ?ler_addl ?addr0 // => _.
- by move: (people _) => n; rewrite -addn1 PoszD ler_addl lexx.
- by move: (people _) => n; rewrite -addn1 PoszD ler_addl lexx.
Qed.

Example groups_example : one_more alone both /\
  private (@one_more _ _) (groups Some first_group best_of_group) (two ^+ 1) (0 *+ 1).
Proof.
split; last first.
  apply: groups_private => //; [exact: first_group_one | exact: best_of_group_law |].
  exact: best_of_group_private.
exists ord_max; split; first by left; rewrite ffunE.
by move=> u ne; rewrite !ffunE; case: u ne => [[|[|]]].
Qed.

Example open_groups_example :
  private (@one_more _ _) (open_groups Some first_group two hundredth best_of_group)
    ((two * two) ^+ 1) ((hundredth + 0) *+ 1).
Proof.
apply: open_groups_private => //; [exact: first_group_one | exact: best_of_group_law |].
exact: best_of_group_private.
Qed.

Example one_key_each_example :
  private (@one_more [finType of 'I_2] _) (groups Some first_group (found two hundredth)) two
    hundredth.
Proof. by apply: (one_key_each_private Some first_group_one). Qed.

(* The best two by the gap test, then their counts, or their order. *)
Definition best_two (o : option {set four}) : {set four} :=
  if o is Some A then if (#|A| <= 2)%N then A else set0 else set0.

Lemma best_two_le o : (#|best_two o| <= 2)%N.
Proof. by case: o => [A|] /=; rewrite ?cards0 //; case: ifP; rewrite ?cards0. Qed.

Example laplace_counts_example : counts_private
  (fun q q' => replace_by 1%N q q' /\ grows 1 q q') (gap_test two hundredth 2 2)
  (true_counts best_two) (fun o => laplace_for two^-1 (best_two o)) (fun _ y => y)
  (two * two^-1^-1 ^+ (minn 2 1 * 1)) (hundredth + 0).
Proof.
apply: laplace_counts_private => //; first exact: best_two_le.
  by move=> q; apply: gap_test_law; rewrite ?four_candidates.
move=> q q' [nb _]; apply: gap_test_private; rewrite ?four_candidates //.
by exists (- 1%:Z); apply: replace_moves.
Qed.

Example ranked_margin_example : counts_private (@together four 1 1) (gap_test two hundredth 1 2)
  (true_counts best_two) (fun o => laplace_for two^-1 (best_two o)) (differences best_two)
  (two * two^-1^-1 ^+ (minn 1 2./2 * 1)) (hundredth + 0).
Proof.
apply: ranked_margin_laplace => //; first exact: best_two_le.
  by move=> q; apply: gap_test_law; rewrite ?four_candidates.
move=> q q' [nb _]; apply: gap_test_private; rewrite ?four_candidates //.
by apply: add_remove_drift; case: nb => nb; [left | right].
Qed.

(* Their counts with Laplace noise, of which all share a part. At v = w = 1 no move that has to be
   covered is above 1. *)
Lemma sum_option (I : finType) (F : option I -> nat) : (\sum_c F c = F None + \sum_i F (Some i))%N.
Proof.
rewrite (bigD1 None) //= (reindex_omap Some id) //=; last by case.
by congr addn; apply: eq_bigl => i; rewrite eqxx.
Qed.

Lemma small_distances : distance (1 : rat) 1^-1 2 1 1 < 2%:R /\ distance (1 : rat) 0 2 1 1 < 2%:R.
Proof. by rewrite /distance /spread !big_ord_recl !big_ord0. Qed.

Lemma square_above (z : int) : (`|z|%N%:R : rat) <= z%:~R ^+ 2.
Proof.
rewrite -[X in _ <= X]real_normK ?num_real // -intr_norm -abszE -pmulrn -natrX ler_nat.
by case: `|z|%N => // n; rewrite leq_pmulr.
Qed.

Lemma laplace_covers_distance :
  covers_distance best_two (laplace two^-1) (laplace two^-1) 1 1 (distance (1 : rat) 1^-1 2 1 1) two
    0.
Proof.
move=> o u out near; pose S : {set option four} :=
  [set c | if c is Some i then i \in best_two o else true].
have e : shared_noise best_two (laplace two^-1) (laplace two^-1) o =1 laplace_for two^-1 S.
  by move=> y; apply: eq_bigr => -[i|] _; rewrite inE.
have le : (\sum_c `|u c| <= 1)%N.
  rewrite -ltnS -(ltr_nat [numDomainType of rat]); apply: (le_lt_trans _ small_distances.1).
  apply: le_trans near; rewrite !divr1 sum_option natrD natr_sum ler_add //.
  - exact: square_above.
  - by apply: ler_sum => i _; apply: square_above.
have outS c : c \notin S -> u c = 0 by case: c => [i|]; rewrite inE // => /out.
have := laplace_for_covers (isT : 0 < two^-1) (isT : two^-1 < 1) outS le.
rewrite expr1 invrK => cl s us; rewrite (eq_bigr _ (fun y _ => e y)); apply: (le_trans (cl s us)).
by rewrite ler_add2r ler_wpmul2l // ler_sum // => y _; rewrite /noisy e.
Qed.

Example shared_counts_example : counts_private (@together four 1 1) (gap_test two hundredth 1 2)
  (counts_in_parts best_two 1) (shared_noise best_two (laplace two^-1) (laplace two^-1))
  (shared_counts best_two id) (two * two) (hundredth + 0).
Proof.
have law := laplace_countable_law (isT : 0 < two^-1) (isT : two^-1 < 1).
apply: (@shared_counts_private _ _ _ best_two 2 1 1 1 _ _ id law law best_two_le _ 1 1) => //.
- by move=> q; apply: gap_test_law; rewrite ?four_candidates.
- move=> q q' [nb _]; apply: gap_test_private; rewrite ?four_candidates //.
  by apply: add_remove_drift; case: nb => nb; [left | right].
exact: laplace_covers_distance.
Qed.

(* An order by noise that covers a distance, and by Laplace noise under replace. *)
Example ranked_covered_example : counts_private (@together four 1 1) (gap_test two hundredth 1 2)
  (parts_of_counts best_two 1) (fun o => noise_on (best_two o) (laplace two^-1))
  (differences best_two) (two * two) (hundredth + 0).
Proof.
have law := laplace_countable_law (isT : 0 < two^-1) (isT : two^-1 < 1).
apply: (@ranked_margin_covered _ _ _ best_two 2 1 1 1 _ law best_two_le _ 1) => //.
- by move=> q; apply: gap_test_law; rewrite ?four_candidates.
- move=> q q' [nb _]; apply: gap_test_private; rewrite ?four_candidates //.
  by apply: add_remove_drift; case: nb => nb; [left | right].
move=> o u out near; have le : (\sum_i `|u i| <= 1)%N.
  rewrite -ltnS -(ltr_nat [numDomainType of rat]); apply: (le_lt_trans _ small_distances.2).
  apply: le_trans near; rewrite divr1 natr_sum; apply: ler_sum => i _; exact: square_above.
by have := laplace_for_covers (isT : 0 < two^-1) (isT : two^-1 < 1) out le; rewrite expr1 invrK.
Qed.

Example ranked_replace_example : counts_private
  (fun q q' : four -> int => replace_by 1 q q' /\ grows 1 q q') (gap_test two hundredth 2 2)
  (true_counts best_two) (fun o => laplace_for two^-1 (best_two o)) (differences best_two)
  (two * two^-1^-1 ^+ (minn 2 1 * 1)) (hundredth + 0).
Proof.
apply: (ranked_margin_replace best_two_le) => //.
  by move=> q; apply: gap_test_law; rewrite ?four_candidates.
move=> q q' [nb _]; apply: gap_test_private; rewrite ?four_candidates //.
by exists (- 1%:Z); apply: replace_moves.
Qed.

(* Keys in rounds: a look, a question and another look, with Laplace noise. Each individual gives to
   the first of its keys; in the second look, if the answer was above 0, to the first whose value
   was not below 0 in the first look. *)
Definition ballot := ([finType of bool] + [finType of unit])%type.
Definition look_ask_look (j : nat) : bool := j != 1%N.
Definition one_vote (j : nat) (u : 'I_2) (S : {set bool}) (past : seq {ffun ballot -> int}) :
    option ballot :=
  match j, past with
  | 0%N, _ => omap inl [pick i in S]
  | 1%N, _ => if S == set0 then None else Some (inr tt)
  | _, [:: answer, first & _] =>
    omap inl (if 0 < answer (inr tt) then [pick i in S | 0 <= first (inl i)] else [pick i in S])
  | _, _ => None
  end.
Definition votes j u S past : {ffun ballot -> int} :=
  [ffun c => ((one_vote j u S past == Some c) : nat)%:Z].

Lemma one_vote_own j u S past i : one_vote j u S past = Some (inl i) -> i \in S.
Proof.
have own (o : option bool) : (forall k, o = Some k -> k \in S) ->
    omap inl o = Some (inl i : ballot) -> i \in S.
  by case: o => //= k /(_ k erefl) kS [<-].
have any : forall k, [pick i in S] = Some k -> k \in S by move=> k; case: pickP => // k' ? [<-].
case: j past => [|[|j]] /= past; [exact: own | by case: ifP |].
case: past => [|answer [|first _]] //.
by apply: own; case: ifP => _ //= k; case: pickP => // k' /andP[? _] [<-].
Qed.

Lemma one_vote_absent j u past : one_vote j u set0 past = None.
Proof.
case e : (one_vote j u set0 past) => [[i|a]|] //; first by have := one_vote_own e; rewrite inE.
case: j past e => [|[|j]] past /=; rewrite ?eqxx //; first by case: pickP.
by case: past => [|answer [|first past]] //; case: ifP => _; case: pickP.
Qed.

Lemma votes_sum j u S past (F : ballot -> int -> nat) : (forall c, F c 0 = 0%N) ->
  (\sum_c F c (votes j u S past c) = if one_vote j u S past is Some c then F c 1%:Z else 0)%N.
Proof.
move=> F0; case e : (one_vote j u S past) => [c|].
  rewrite (bigD1 c) //= big1 => [|c' ne]; first by rewrite addn0 ffunE e eqxx.
  by rewrite ffunE e [Some c == _](inj_eq Some_inj) eq_sym (negPf ne) F0.
by rewrite big1 // => c _; rewrite ffunE e F0.
Qed.

Definition eighth : rat := 8%:R^-1.
Definition half_tail (x : int) : rat := if x is Posz n.+1 then (two^-1) ^+ n / two else 1.

Lemma half_law : whole_law (laplace two^-1).
Proof.
split; first exact: laplace_countable_law.
have [le near] := @laplace_total [archiFieldType of rat] two^-1 isT isT.
by split=> [s us _|e /near[s us lt]]; [apply: le | exists s].
Qed.

Lemma half_tails x s : uniq s -> {in s, forall z, x <= z} ->
  \sum_(z <- s) laplace two^-1 z <= half_tail x.
Proof.
move=> us sx; case: x sx => [[|n]|n] sx; rewrite /half_tail; try exact: laplace_sum.
have /(_ us) := @laplace_high _ two^-1 isT isT s n; apply: le_trans.
rewrite big_seq [X in _ <= X]big_seq_cond le_eqVlt; apply/orP; left; apply/eqP/eq_bigl => z.
by case: (boolP (z \in s)) => // /sx; rewrite -addn1 PoszD lez_addr1 => ->.
Qed.

Lemma half_covers j : @covers_norm _ [finType of bool] [finType of unit] 1 (fun=> laplace two^-1) j
  (basic two 0).
Proof.
move=> A u out small r r0 s us.
have le : (\sum_c `|u c| <= 1)%N.
  apply: leq_trans small; apply: leq_sum => c _; case: `|u c|%N => // n.
  by rewrite leq_pmulr.
have h0 : 0 < two^-1 by []. have h1 : two^-1 < 1 by [].
have [l0 l1] := noise_on_law A (laplace_countable_law h0 h1).
rewrite /basic; case: ifP => [e_r|_]; last first.
  apply: (le_trans (l1 s us)); rewrite ler_addr mulr_ge0 // sumr_ge0 // => y _.
  exact: l0.
apply: (le_trans (laplace_for_covers h0 h1 out le us)); rewrite ler_add2r.
by apply: ler_wpmul2r; rewrite ?expr1 ?invrK // sumr_ge0 // => y _; apply: l0.
Qed.

Lemma votes_own j u (S : {set bool}) past i : i \notin S -> votes j u S past (inl i) = 0.
Proof. by move=> iS; rewrite ffunE; case: eqP => // /one_vote_own; rewrite (negPf iS). Qed.

Lemma votes_ge0 j u S past i : 0 <= votes j u S past (inl i).
Proof. by rewrite ffunE. Qed.

Lemma votes_absent j u past : votes j u set0 past = 0.
Proof. by apply/ffunP => c; rewrite !ffunE one_vote_absent. Qed.

Lemma votes_norm j u S past : (\sum_c `|votes j u S past c| ^ 2 <= 1 ^ 2)%N.
Proof.
rewrite (@votes_sum j u S past (fun _ z => `|z| ^ 2)%N) //.
by case: (one_vote _ _ _ _).
Qed.

Lemma votes_thresholds j u S past :
  \sum_(i | look_ask_look j && (0 < votes j u S past (inl i)))
    half_tail (4 - votes j u S past (inl i)) <= eighth.
Proof.
apply: (@le_trans _ _ (\sum_(i | one_vote j u S past == Some (inl i)) eighth)).
  rewrite big_mkcond [X in _ <= X]big_mkcond /=; apply: ler_sum => i _; rewrite ffunE.
  by case: eqP => _; rewrite ?andbF //; case: ifP.
case: (one_vote j u S past) => [[k|a]|]; try by rewrite big_pred0.
by rewrite (big_pred1 k) // => i; apply/eqP/eqP => [[->]|->].
Qed.

Example key_rounds_example : key_rounds_private look_ask_look (fun=> 4) (fun=> laplace two^-1) votes
  3 (\prod_(j < 3) two) (\sum_(j < 3) 0 + \sum_(j < 3) eighth).
Proof.
apply: (@key_rounds_basic _ _ _ _ 3 1 _ _ _ _ (fun=> half_tail) (fun=> eighth) (fun=> half_law)
  votes_own votes_ge0 votes_absent votes_norm _ votes_thresholds (fun=> two) (fun=> 0)) => //.
- by move=> j x s; apply: half_tails.
- exact: half_covers.
Qed.

(* A family of profiles that composes as those of Gaussians do: 2 to the whole part of v. *)
Definition whole_part (v : rat) : nat := \max_(n < Num.bound v | (n : nat)%:R <= v) n.
Definition doubling (v : rat) : rat -> rat := basic (two ^+ whole_part v) 0.

Lemma whole_part_ge n (v : rat) : n%:R <= v -> (n <= whole_part v)%N.
Proof.
move=> nv; have v0 : 0 <= v by apply: le_trans nv.
have lt : (n < Num.bound v)%N.
  by rewrite -(ltr_nat [numDomainType of rat]) (le_lt_trans nv) ?archi_boundP.
exact: (bigmax_sup (Ordinal lt)).
Qed.

Lemma whole_part_le (v : rat) : 0 <= v -> (whole_part v)%:R <= v.
Proof.
by move=> v0; apply: (big_ind (fun n => n%:R <= v)) => // m n mv nv; case: (leqP m n).
Qed.

Lemma doubling_composes v w : 0 <= v -> 0 <= w ->
  composes (doubling v) (doubling w) (doubling (v + w)).
Proof.
move=> v0 w0 O1 O2 p p' q q' lp lp' lq lq' w1 w2 r r0.
have e0 n : 0 <= two ^+ n by rewrite exprn_ge0.
have [c1 c2] := basic_composes (e0 _) (e0 _) (lexx 0) lp lp' lq lq' w1 w2 r0.
have le : basic (two ^+ whole_part v * two ^+ whole_part w) (0 + 0) r <= doubling (v + w) r.
  rewrite /doubling /basic -exprD; case: (lerP (two ^+ whole_part (v + w)) r) => [le_r|_].
    rewrite (le_trans _ le_r) ?addr0 //; apply: ler_weexpn2l => //; apply: whole_part_ge.
    by rewrite natrD ler_add ?whole_part_le.
  by case: ifP; rewrite ?addr0.
by split=> s us; [apply: (le_trans (c1 s us)) | apply: (le_trans (c2 s us))]; rewrite ler_add2l.
Qed.

Lemma whole_part1 : whole_part 1 = 1%N.
Proof.
apply/eqP; rewrite eqn_leq whole_part_ge // andbT -(ler_nat [numDomainType of rat]).
exact: whole_part_le.
Qed.

Lemma whole_part0 : whole_part 0 = 0%N.
Proof. by apply/eqP; rewrite -leqn0 -(ler_nat [numDomainType of rat]) whole_part_le. Qed.

Example key_rounds_gaussian_example : key_rounds_private look_ask_look (fun=> 4)
  (fun=> laplace two^-1) votes 3 8%:R (doubling (\sum_(j < 3) 1) 8%:R + \sum_(j < 3) eighth).
Proof.
apply: (@key_rounds_gaussian _ _ _ _ 3 1 _ _ _ _ (fun=> half_tail) (fun=> eighth) (fun=> half_law)
  votes_own votes_ge0 votes_absent votes_norm _ votes_thresholds doubling (fun=> 1)) => //.
- by move=> j x s; apply: half_tails.
- exact: doubling_composes.
- move=> r r0; rewrite /doubling whole_part0 expr0 /basic le_maxl; case: ifP => [r1|_].
    by rewrite lexx subr_le0.
  by rewrite ler01 ler_subl_addr ler_addl.
- by move=> j; rewrite /doubling whole_part1 expr1; apply: half_covers.
Qed.

(* Two rounds of an additive fit for two individuals with a label and one feature: parts are the
   label and the feature. Costs are those of pure privacy: a factor of 2 to a number up to a. *)
Definition pure_near (a : rat) (O : eqType) (p p' : O -> rat) : Prop :=
  [/\ countable_law p, countable_law p' &
    forall o, exists2 n : nat, n%:R <= a & p o <= two ^+ n * p' o].
Definition pure_delta (a r : rat) : rat := if two ^+ whole_part a <= r then 0 else 1.

Lemma pure_near_composes a b (O1 O2 : eqType) (p p' : O1 -> rat) (q q' : O1 -> O2 -> rat) :
  countable_law p -> countable_law p' -> (forall o, countable_law (q o)) ->
  (forall o, countable_law (q' o)) -> pure_near a p p' -> (forall o, pure_near b (q o) (q' o)) ->
  pure_near (a + b) (then_ p q) (then_ p' q').
Proof.
move=> lp lp' lq lq' [_ _ le] near; split; try exact: then_law; case=> o1 o2.
have [_ _ /(_ o2)[n nb le2]] := near o1; have [m ma le1] := le o1.
exists (m + n)%N; first by rewrite natrD ler_add.
rewrite /then_ /= exprD mulrACA; apply: ler_pmul => //; first by case: lp.
by case: (lq o1).
Qed.

Lemma pure_near_close a (O : eqType) (p p' : O -> rat) r : 0 <= r -> pure_near a p p' ->
  countably_close p p' r (pure_delta a r).
Proof.
move=> r0 [[p0 p1] [p'0 _] le] s us; rewrite /pure_delta; case: ifP => [ar|_]; last first.
  by apply: (le_trans (p1 s us)); rewrite ler_addr mulr_ge0 ?sumr_ge0.
rewrite addr0 mulr_sumr; apply: ler_sum => o _; have [n na leo] := le o.
apply: (le_trans leo); apply: ler_wpmul2r => //; apply: le_trans ar.
by apply: ler_weexpn2l => //; apply: whole_part_ge.
Qed.

Definition range_cost (r : rat) : rat := (Num.bound r)%:R.

Lemma pure_range (I : finType) r (p p' : I -> rat) : is_law p -> is_law p' -> in_range r p p' ->
  pure_near (range_cost r) p p'.
Proof.
have law (q : I -> rat) : is_law q -> countable_law q.
  case=> q0 q1; split=> // s us; rewrite -q1 -[X in _ <= X]big_enum.
  by apply: part_sum => //; [exact: enum_uniq | move=> o _; rewrite mem_enum].
move=> lp lp' [A A0 near]; split; try exact: law; move=> o; exists (Num.bound r) => //.
have [p0 p1] := lp; have [p'0 p'1] := lp'.
have Ar : 1 <= A * r.
  by rewrite -p'1 -[A * r]mulr1 -p1 big_distrr /=; apply: ler_sum => i _; case: (near i).
have r0 : 0 < r by rewrite -(pmulr_rgt0 r A0) (lt_le_trans ltr01).
apply: (@le_trans _ _ (r * p' o)); last first.
  apply: ler_wpmul2r => //; apply: (le_trans (ltW (archi_boundP (ltW r0)))).
  by rewrite -natrX ler_nat ltnW // ltn_expl.
apply: (@le_trans _ _ (r * (A * p o))).
  by rewrite mulrA [r * A]mulrC ler_pemull.
by apply: ler_wpmul2l; [apply: ltW | case: (near o)].
Qed.

Lemma pure_noise (J : finType) (D : nat) (x x' : {ffun J -> int}) :
  (\sum_j `|x' j - x j| ^ 2 <= D)%N ->
  pure_near D%:R (noisy (laplace_for two^-1 [set: J]) x) (noisy (laplace_for two^-1 [set: J]) x').
Proof.
move=> le; have law := laplace_for_law (isT : 0 < two^-1) (isT : two^-1 < 1) [set: J].
split; try exact: noisy_law; move=> y; exists D => //.
have small : (\sum_j `|(x' - x)%R j| <= D)%N.
  apply: leq_trans le; apply: leq_sum => j _; rewrite !ffunE.
  by case: `|_|%N => // n; rewrite leq_pmulr.
have none j : j \notin [set: J] -> (x' - x) j = 0 by rewrite inE.
have := laplace_for_covers (isT : 0 < two^-1) (isT : two^-1 < 1) none small
  (isT : uniq [:: y - x]).
by rewrite !big_seq1 invrK addr0 /noisy opprB addrA subrK.
Qed.

Notation two_bits := [finType of bool * bool].
Definition label_of (row : two_bits) : bool := row.1.
Definition bit_of (i : bool) (row : two_bits) : bool := if i then row.2 else row.1.

Example additive_fit_example r : 0 <= r -> countably_private (@row_more [finType of 'I_2] two_bits)
  (fun d => fit label_of bit_of (fun _ _ row => if label_of row then 1 else -1) (fun _ _ _ => 1)
    (fun=> two) (laplace_for two^-1 setT) (fun=> laplace_for two^-1 setT)
    (fun=> laplace_for two^-1 setT) d (j := 2)) r
  (pure_delta (fit_cost (fun=> two) range_cost (fun D => D%:R) (fun _ D => D%:R) (fun _ D => D%:R)
    1 (1 ^ 2) (1 ^ 2) 1 2) r).
Proof.
have law (J : finType) := laplace_for_law (isT : 0 < two^-1) (isT : two^-1 < 1) [set: J].
apply: (additive_fit_private (near := pure_near)) => //.
- exact: pure_near_composes.
- exact: pure_near_close.
- exact: pure_range.
- exact: pure_noise.
- by move=> j; apply: pure_noise.
- by move=> j; apply: pure_noise.
- by rewrite card_bool.
- by move=> j h row; case: ifP.
Qed.

(* The geometric law: f(x) = gamma x/(1 - (1 - gamma) x), and 1/gamma runs are expected. *)
Section Geometric.
Variables (R : archiFieldType) (gamma : R).
Hypotheses (g0 : 0 < gamma) (g1 : gamma < 1).
Let h (x : R) : R := gamma / (1 - (1 - gamma) * x).
Definition geometric (x : R) : R := x * h x.
Definition slope_of_geometric (x : R) : R := gamma^-1 * h x ^+ 2.

Let w0 (x : R) : 0 <= x <= 1 -> 0 < 1 - (1 - gamma) * x.
Proof.
case/andP=> x0 x1; rewrite subr_gt0; apply: (@le_lt_trans _ _ (1 - gamma)).
  by rewrite ler_pimulr // subr_ge0 ltW.
by rewrite ltr_subl_addr ltr_addl.
Qed.

Let h0 (x : R) : 0 <= x <= 1 -> 0 <= h x.
Proof. by move=> x01; rewrite /h divr_ge0 // ltW // w0. Qed.

Let h1 (x : R) : 0 <= x <= 1 -> h x <= 1.
Proof.
move=> x01; rewrite ler_pdivr_mulr ?w0 // mul1r ler_subr_addr -ler_subr_addl.
by case/andP: x01 => _ x1; rewrite ler_pimulr // subr_ge0 ltW.
Qed.

Let h_le (x y : R) : 0 <= x <= 1 -> 0 <= y <= 1 -> x <= y -> h x <= h y.
Proof.
move=> x01 y01 xy; rewrite /h; apply: ler_wpmul2l; first exact: ltW.
rewrite lef_pinv ?posrE ?w0 // ler_add2l ler_opp2; apply: ler_wpmul2l => //.
by rewrite subr_ge0 ltW.
Qed.

Let gap (x y : R) : 0 <= x <= 1 -> 0 <= y <= 1 ->
  geometric y - geometric x = (y - x) * (gamma^-1 * (h y * h x)).
Proof.
move=> x01 y01; rewrite /geometric /h; have := w0 x01; have := w0 y01.
set a := 1 - _ * y; set b := 1 - _ * x => a0 b0.
have an : a != 0 by rewrite gt_eqF.
have bn : b != 0 by rewrite gt_eqF.
have gn : gamma != 0 by rewrite gt_eqF.
have ab : y * b - x * a = y - x.
  rewrite /a /b !mulrBr !mulr1 opprB addrA; congr (_ - _).
  by rewrite [y * (_ * _)]mulrCA [x * (_ * _)]mulrCA [x * y]mulrC subrK.
have e : gamma / a * (gamma / b) = gamma * (gamma / (a * b)).
  by rewrite mulrACA -invfM -mulrA.
rewrite e mulKf // -ab mulrBl; congr (_ - _); rewrite -mulrA; congr (_ * _); rewrite mulrCA;
  congr (_ * _); rewrite invfM.
  by rewrite mulrCA divff // mulr1.
by rewrite mulrA divff // mul1r.
Qed.

Lemma geometric_slopes : slopes geometric slope_of_geometric gamma^-1.
Proof.
have i0 : 0 <= gamma^-1 by rewrite invr_ge0 ltW.
split=> [|x x01|x y x0 xy y1]; first by rewrite /geometric mul0r.
  rewrite mulr_ge0 ?exprn_ge0 ?h0 //=; apply: ler_pimulr => //.
  by apply: exprn_ile1; rewrite ?h0 ?h1.
have x01 : 0 <= x <= 1 by rewrite x0 (le_trans xy).
have y01 : 0 <= y <= 1 by rewrite y1 (le_trans x0).
have d0 : 0 <= y - x by rewrite subr_ge0.
rewrite gap // /slope_of_geometric !expr2; apply/andP; split; do 2! apply: ler_wpmul2l => //.
  by apply: ler_wpmul2r; rewrite ?h0 ?h_le.
by apply: ler_wpmul2l; rewrite ?h0 ?h_le.
Qed.

Lemma geometric_closed x : slope_of_geometric x ^+ 1 = gamma^-1 ^+ 1 *
  (gamma / (1 - (1 - gamma) * x)) ^+ 2.
Proof. by []. Qed.

End Geometric.

Definition place (i : four) : nat := i.
Definition one_half : rat := 2%:R^-1.

Lemma draw_law q : is_law (@exponential _ four two q).
Proof. by apply: exponential_law; rewrite ?four_candidates. Qed.

Lemma add_remove_both (q q' : four -> int) : add_remove q q' -> add_remove q' q.
Proof. by case; [right | left]. Qed.

Example negative_binomial_example : private (@add_remove four)
  (best_of_runs place (exponential two) (geometric one_half)) (two * two ^+ 2) (one_half^-1 * 0).
Proof.
have slopes := @geometric_slopes [archiFieldType of rat] one_half isT isT.
have four_ge1 : 1 <= two ^+ 2 by [].
by apply: (@negative_binomial_private _ _ _ _ place _ _ _ _ (@ord_inj 4) draw_law slopes
  add_remove_both two two (two ^+ 2) 0 0 two_ge1 two_ge1 four_ge1 exponential_example
  exponential_example one_half 2 1).
Qed.

(* One run for certain, which the exponential function of rate 0 makes. *)
Example poisson_example : private (@add_remove four)
  (best_of_runs place (exponential two) (fun x => x)) (two * 1) (1 * 0).
Proof.
have flat : slopes (fun x : rat => x) (fun=> 1) 1.
  by split=> [|x _|x y _ _ _]; rewrite ?mulr1 ?lexx ?ler01.
have one1 : 1 <= (1 : rat) by rewrite lexx.
have sure : private (@add_remove four) (exponential two) 1 1.
  move=> q q' _ S; rewrite mul1r; apply: (le_trans (Pr_le1 _ (draw_law q))).
  by rewrite ler_addr Pr_ge0 // => i; case: (draw_law q').
apply: (poisson_private (@ord_inj 4) draw_law flat add_remove_both two_ge1 one1 one1
  exponential_example sure (exp_mu := fun=> 1)) => [x _|x y|x y _||//].
- by rewrite mulr1.
- by rewrite mulr1.
- by rewrite lexx.
- by [].
Qed.

(* Real numbers have n-th roots: so has every real closed field. *)
Section Roots.
Variables (R : rcfType) (n : nat).
Hypothesis n0 : (0 < n)%N.

Lemma root_exists (y : R) : 0 < y -> exists x, (0 < x) && (x ^+ n == y).
Proof.
move=> y0; have le : 0 <= 1 + y by rewrite addr_ge0 ?ler01 ?ltW.
have ends : ('X^n - y%:P).[0] <= 0 <= ('X^n - y%:P).[1 + y].
  rewrite !hornerE !hornerXn expr0n eqn0Ngt n0 sub0r oppr_le0 (ltW y0) subr_ge0 /=.
  apply: (@le_trans _ _ (1 + y)); first by rewrite ler_addr ler01.
  by rewrite ler_eexpr // ler_addl ltW.
have [x /andP[x0 _]] := poly_ivt le ends; rewrite rootE !hornerE !hornerXn subr_eq0 => /eqP e.
exists x; rewrite e eqxx andbT lt_neqAle x0 andbT eq_sym; apply: contraTneq y0 => x00.
by rewrite -e x00 expr0n eqn0Ngt n0 ltxx.
Qed.

Definition nth_root (y : R) : R :=
  match @idP (0 < y) with ReflectT y0 => xchoose (root_exists y0) | ReflectF _ => 1 end.

Example real_roots : is_root n nth_root.
Proof.
move=> y y0; rewrite /nth_root; case: {-}_ / idP => // h.
by have /andP[x0 /eqP] := xchooseP (root_exists h).
Qed.

End Roots.

(* Real numbers have bounded sums: a sum of numbers that are not negative has a value if its finite
   parts are bounded. Then the search has a law, and the Large Margin Mechanism is private with no
   hypothesis left but numbers. *)
Section Complete.
Variables (R : realFieldType) (total : (int -> R) -> R).
Hypothesis complete : forall f B, (forall g, 0 <= f g) ->
  (forall s, uniq s -> \sum_(g <- s) f g <= B) -> is_sum f (total f).

Lemma stops_in n (x : R) F g l : 0 < x < 1 -> 0 <= stops n (laplace_cdf x) F g l <= 1.
Proof.
case/andP=> x0 x1; have in01 r : 0 <= passes (laplace_cdf x) F g r <= 1 by apply: laplace_cdf_in.
have /andP[f0 f1] : 0 <= \prod_(r < l) (1 - passes (laplace_cdf x) F g r) <= 1.
  elim: l => [|l /andP[f0 f1]]; first by rewrite big_ord0 ler01 lexx.
  have /andP[a b] := in01 l; rewrite big_ord_recr /= mulr_ge0 ?subr_ge0 //=.
  by rewrite mulr_ile1 ?subr_ge0 // ler_subl_addr ler_addl.
have /andP[p0 p1] : 0 <= (if (l < n)%N then passes (laplace_cdf x) F g l else 1) <= 1.
  by case: ifP => _; rewrite ?ler01 ?lexx.
by rewrite /stops mulr_ge0 //= mulr_ile1.
Qed.

Definition stop_chance n (x1 x2 : R) F l : R :=
  total (fun g => laplace x1 g * stops n (laplace_cdf x2) F g l).

Lemma answers_exist n x1 x2 F l : 0 < x1 < 1 -> 0 < x2 < 1 ->
  laplace_answer n x1 x2 F l (stop_chance n x1 x2 F l).
Proof.
move=> h1 h2; have /andP[x0 x1'] := h1; apply: (complete (B := 1)) => [g|s us].
  by rewrite mulr_ge0 ?laplace_ge0 //; case/andP: (stops_in n F g l h2).
apply: le_trans (laplace_sum x0 x1' us); apply: ler_sum => g _.
by rewrite ler_pimulr ?laplace_ge0 //; case/andP: (stops_in n F g l h2).
Qed.

Lemma inverse_in (k : nat) : (1 < k)%N -> 0 < (k%:R^-1 : R) < 1.
Proof.
move=> k1; have k0 : 0 < k%:R :> R by rewrite ltr0n ltnW.
by rewrite invr_gt0 k0 /= invf_lt1 // ltr1n.
Qed.

Example above_threshold_example :
  private (fun F F' => forall r, `|F' r - F r| <= 1%N%:Z)
    (fun F (l : 'I_6) => stop_chance 5 2%:R^-1 3%:R^-1 F l)
    (2%:R^-1^-1 ^+ 1 * 3%:R^-1^-1 ^+ 2) 0.
Proof.
have half : 0 < (2%:R^-1 : R) < 1 by apply: inverse_in.
have third : 0 < (3%:R^-1 : R) < 1 by apply: inverse_in.
have /andP[h0 h1] := half; have /andP[t0 t1] := third.
by apply: above_threshold_laplace => // F l; apply: answers_exist.
Qed.

(* e^(epsilon/12) = 2, delta = 1/100, sensitivity 1, four candidates: a1 = 2, a2 = 5, a3 = 12 and t
   = 7 do. *)
Definition search (q : four -> int) (m : int) : nat -> R :=
  stop_chance 3 (2%:R^-1 ^+ 2) 2%:R^-1 (query q 2%N 5%N (fun=> 12%N) (fun=> 7%N) m).

Lemma large_margin_numbers :
  [/\ 1 < 2%:R :> R, 0 < 100%:R^-1 :> R, 3%:R / (2%:R * 100%:R^-1) <= (2%:R ^+ 4) ^+ 2 :> R &
      3%:R / 100%:R^-1 <= (2%:R ^+ 2) ^+ 5 :> R] /\
  (forall r, (r < 3)%N -> (3 * r.+1 * r.+2)%:R / 100%:R^-1 <= 2%:R ^+ 12 :> R) /\
  (forall r, (r < 3)%N -> (3 * r.+1)%:R / 100%:R^-1 * 2%:R ^+ (4 * 1) <= (2%:R ^+ 2) ^+ 7 :> R).
Proof.
split; [split | split=> r r3].
- by rewrite ltr1n.
- by rewrite invr_gt0 ltr0n.
- by rewrite invfM invrK mulrA mulrAC -!natrX -natrM ler_pdivr_mulr ?ltr0n // -natrM ler_nat.
- by rewrite invrK -natrM -!natrX ler_nat.
- by rewrite invrK -natrM -natrX ler_nat; case: r r3 => [|[|[|]]].
- by rewrite invrK -!natrX -!natrM ler_nat; case: r r3 => [|[|[|]]].
Qed.

Lemma search_law q m l :
  laplace_answer 3 (2%:R^-1 ^+ 2) 2%:R^-1 (query q 2%N 5%N (fun=> 12%N) (fun=> 7%N) m) l (search q
    m l).
Proof.
have h := inverse_in (isT : 1 < 2)%N; rewrite /search; apply: answers_exist => //.
by have /andP[h0 h1] := h; rewrite exprn_gt0 //= exprn_ilt1 ?(ltW h0).
Qed.

Example large_margin_example : countably_private (@replace four)
  (@large_margin R four 3 2%:R search four id (exponential (2%:R ^+ 2))) (2%:R ^+ 12) 100%:R^-1.
Proof.
have [[w1 d0 l1 l2] [l3 l4]] := large_margin_numbers.
by apply: (@large_margin_private _ four 1 3 _ _ w1 d0 _ 2 5 (fun=> 12%N) (fun=> 7%N)) => //;
  [rewrite four_candidates | apply: search_law].
Qed.

(* An open universe: the last of the four is a dummy. *)
Definition hide (i : four) : option four := if i == ord_max then None else Some i.

Example large_margin_open_example : countably_private (@replace four)
  (@large_margin R four 3 2%:R search (option_finType four) hide (fun _ o => (o == None)%:R))
  (2%:R ^+ 12) 100%:R^-1.
Proof.
have [[w1 d0 l1 l2] [l3 l4]] := large_margin_numbers.
by apply: (@large_margin_open_private _ four 1 3 _ _ w1 d0 _ 2 5 (fun=> 12%N) (fun=> 7%N)) => //;
  [rewrite four_candidates | apply: search_law].
Qed.

End Complete.
