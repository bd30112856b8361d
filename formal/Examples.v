(* That the theorems are about something: for each of them numbers, scores and neighbors that
   satisfy everything it asks for. Where real numbers are needed, what is asked of them is shown to
   be what real numbers have.

   Page: docs/proofs/machine-checked.md ("Not empty"). *)
From Privmax Require Import Prelude Definitions Scores Exponential Composition
  RestrictedExponential.
From Privmax Require Import LimitedDomain NestedMargin NoisyMaximum AboveThreshold
  LargeMargin GapTest.
From Privmax Require Import SetMargin Groups NoisyCounts RankedMargin
  Repetition.

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
