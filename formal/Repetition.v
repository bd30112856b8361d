(* The best of a random number of runs.

   Page: docs/proofs/tuning.md. f is the generating function of the number of runs K, f x = E[x^K],
   and f' its derivative; m = f' 1 is E[K]. Numbers are of an Archimedean field: the integrals of
   the page are sums over ever finer steps here. *)
From Privmax Require Import Prelude Definitions.

Section Best.
Variables (R : archiFieldType) (Y : finType) (score : Y -> nat).
(* "Runs with equal scores are told apart by a uniform tag that belongs to the outcome. So let the
   order be strict." *)
Hypothesis strict : injective score.
Implicit Types (Q : Y -> R) (y z : Y).

Definition below Q y : R := \sum_(z | (score z < score y)%N) Q z.
Definition up_to Q y : R := \sum_(z | (score z <= score y)%N) Q z.

Lemma up_to_below Q y : up_to Q y = below Q y + Q y.
Proof.
rewrite /up_to (bigD1 y) //= addrC; congr (_ + _); apply: eq_bigl => z.
by rewrite ltn_neqAle andbC (inj_eq strict).
Qed.

(* The best of n independent runs is y: y is among them, and none is above. *)
Definition best_is n y (runs : {ffun 'I_n -> Y}) : bool :=
  [forall i, score (runs i) <= score y]%N && [exists i, runs i == y].

Theorem best_of_n Q n y :
  \sum_(runs | best_is y runs) \prod_(i < n) Q (runs i) = up_to Q y ^+ n - below Q y ^+ n.
Proof.
have all (P : pred Y) : (\sum_(z | P z) Q z) ^+ n =
    \sum_(runs : {ffun 'I_n -> Y} | [forall i, P (runs i)]) \prod_i Q (runs i).
  rewrite -[n in LHS]card_ord -prodr_const bigA_distr_big /=; apply: eq_bigl => runs.
  by apply/ffun_onP/forallP.
apply/eqP; rewrite eq_sym subr_eq; apply/eqP.
rewrite /up_to /below !all (bigID (fun runs : {ffun 'I_n -> Y} => [exists i, runs i == y])) /=.
congr (_ + _); apply: eq_bigl => runs; apply/andP/forallP => [[/forallP le no] i|lt].
  rewrite ltn_neqAle le andbT (inj_eq strict).
  by apply: contra no => e; apply/existsP; exists i.
split; first by apply/forallP => i; apply: ltnW.
by apply/negP => /existsP[i /eqP e]; have := lt i; rewrite e ltnn.
Qed.

(* f is between its slopes: it is convex, f' is its derivative, and m bounds it. *)
Definition slopes (f f' : R -> R) (m : R) : Prop :=
  [/\ 0 <= f 0, forall x, 0 <= x <= 1 -> 0 <= f' x <= m &
      forall x x', 0 <= x -> x <= x' -> x' <= 1 ->
        (x' - x) * f' x <= f x' - f x <= (x' - x) * f' x'].

(* "A(y) = f(Q(up to y)) - f(Q(below y))"; nothing is released where K = 0. *)
Definition best_law (f : R -> R) Q (o : option Y) : R :=
  if o is Some y then f (up_to Q y) - f (below Q y) else f 0.

(* "q_u = Q(below y) + u Q(y)" *)
Definition point Q y (u : R) : R := below Q y + u * Q y.

(* "1 - q_u is the chance of an event: a run above y, or at y and a coin of bias 1 - u." *)
Let event y (u : R) z : R := if z == y then 1 - u else (score y <= score z)%:R.

Lemma point_event Q y u : is_law Q -> 1 - point Q y u = \sum_z Q z * event y u z.
Proof.
case=> _ <-; rewrite /point /below (bigD1 y) //= [X in _ = X](bigD1 y) //= /event eqxx.
rewrite mulrBr mulr1 [u * _]mulrC [\sum_(z | (score z < score y)%N) _ + _]addrC opprD addrACA.
congr (_ + _).
rewrite [X in _ - X](_ : _ = \sum_(z | z != y) Q z * (score z < score y)%:R).
  rewrite -sumrB; apply: eq_bigr => z zy; rewrite (negPf zy).
  by case: ltnP => _; rewrite ?mulr1 ?mulr0 ?subrr ?subr0.
rewrite big_mkcond [RHS]big_mkcond /=; apply: eq_bigr => z _.
by case: eqP => [->|_]; rewrite ?ltnn //=; case: ifP; rewrite ?mulr1 ?mulr0.
Qed.

Lemma point_in Q y u : is_law Q -> 0 <= u <= 1 -> 0 <= point Q y u <= 1.
Proof.
move=> law /andP[u0 u1]; have [Q0 _] := law; apply/andP; split.
  by rewrite addr_ge0 ?mulr_ge0 // sumr_ge0.
rewrite -subr_ge0 point_event // sumr_ge0 // => z _; rewrite mulr_ge0 // /event.
by case: eqP; rewrite ?subr_ge0 ?ler0n.
Qed.

(* "It is the same event for D and D'": so "p' <= e^epsilon p + delta". *)
Lemma point_close Q Q' y u r delta : 0 <= r -> is_law Q -> is_law Q' -> 0 <= u <= 1 ->
  close Q' Q r delta -> 1 - point Q' y u <= r * (1 - point Q y u) + delta.
Proof.
move=> r0 law law' /andP[u0 u1] cl; rewrite !point_event //; have [Q0 _] := law.
apply: close_mean => // z; rewrite /event; case: eqP => _.
  by rewrite subr_ge0 u1 ler_subl_addr ler_addl.
by case: (_ <= _)%N; rewrite ?lexx ?ler01.
Qed.

(* The integral of the page in N steps: what is drawn at D is at most, and at D' at least, a sum. *)
Section Steps.
Variables (f f' : R -> R) (m : R) (N : nat).
Hypotheses (sl : slopes f f' m) (N0 : (0 < N)%N).
Let u (i : nat) : R := i%:R / N%:R.

Let N0' : 0 < N%:R :> R. Proof. by rewrite ltr0n. Qed.
Let u0 : u 0 = 0. Proof. by rewrite /u mul0r. Qed.
Let uN : u N = 1. Proof. by rewrite /u divff // gt_eqF. Qed.
Let u_in i : (i <= N)%N -> 0 <= u i <= 1.
Proof. by move=> le; rewrite /u divr_ge0 ?ler0n //= ler_pdivr_mulr // mul1r ler_nat. Qed.

Let step Q y i : point Q y (u i.+1) - point Q y (u i) = Q y / N%:R.
Proof.
rewrite /point opprD addrACA subrr add0r -mulrBl /u -mulrBl -natrB // subSnn mul1r.
by rewrite mulrC.
Qed.

Let best_steps Q y : best_law f Q (Some y) =
  \sum_(0 <= i < N) (f (point Q y (u i.+1)) - f (point Q y (u i))).
Proof.
rewrite telescope_sumr // /best_law up_to_below /point u0 uN mul1r mul0r addr0.
by [].
Qed.

Lemma best_above Q y : is_law Q ->
  best_law f Q (Some y) <= Q y / N%:R * \sum_(i < N) f' (point Q y (u i.+1)).
Proof.
move=> law; have [Q0 _] := law; have [_ _ slope] := sl.
rewrite best_steps big_mkord big_distrr /=; apply: ler_sum => i _.
have /andP[a _] := point_in y law (u_in (ltnW (ltn_ord i))).
have /andP[_ b] := point_in y law (u_in (ltn_ord i)).
rewrite -(step Q y i); have le : point Q y (u i) <= point Q y (u i.+1).
  by rewrite -subr_ge0 step divr_ge0 // ltW.
by have /andP[] := slope _ _ a le b.
Qed.

Lemma best_below Q y : is_law Q ->
  Q y / N%:R * (\sum_(i < N) f' (point Q y (u i.+1)) - m) <= best_law f Q (Some y).
Proof.
move=> law; have [Q0 _] := law; have [_ bound slope] := sl.
rewrite best_steps; apply: (@le_trans _ _ (Q y / N%:R * \sum_(0 <= i < N) f' (point Q y (u i)))).
  apply: ler_wpmul2l; first by rewrite divr_ge0 // ltW.
  rewrite ler_subl_addr -(big_mkord xpredT (fun i => f' (point Q y (u i.+1)))).
  rewrite -[X in X <= _](addrK (\sum_(0 <= i < N) f' (point Q y (u i)))) addrAC -ler_subr_addr.
  rewrite [X in _ <= X]addrAC subrr add0r -sumrB.
  rewrite (telescope_sumr (fun i => f' (point Q y (u i))) (leq0n N)).
  have /andP[_ le] := bound _ (point_in y law (u_in (leqnn N))).
  have /andP[ge _] := bound _ (point_in y law (u_in (leq0n N))).
  by rewrite ler_subl_addr (le_trans le) // ler_addl.
rewrite !big_mkord big_distrr /=; apply: ler_sum => i _.
have /andP[a _] := point_in y law (u_in (ltnW (ltn_ord i))).
have /andP[_ b] := point_in y law (u_in (ltn_ord i)).
rewrite -(step Q y i); have le : point Q y (u i) <= point Q y (u i.+1).
  by rewrite -subr_ge0 step divr_ge0 // ltW.
by have /andP[] := slope _ _ a le b.
Qed.

(* "f'(q_u) <= e^d f'(q_u') for every y and u." *)
Variables (Q Q' : Y -> R) (ed r : R).
Hypotheses (law : is_law Q) (law' : is_law Q') (ed0 : 0 <= ed) (r0 : 0 <= r).
Hypothesis drift : forall y v, 0 <= v <= 1 -> f' (point Q y v) <= ed * f' (point Q' y v).

Lemma best_step y : best_law f Q (Some y) - r * ed * best_law f Q' (Some y) <=
  m * Num.max 0 (Q y - r * Q' y) + r * ed * m * Q' y / N%:R.
Proof.
have [Q0 _] := law; have [Q'0 _] := law'; have [_ bound _] := sl.
pose F := \sum_(i < N) f' (point Q y (u i.+1)); pose F' := \sum_(i < N) f' (point Q' y (u i.+1)).
have FF : F <= ed * F'.
  by rewrite /F' big_distrr /=; apply: ler_sum => i _; apply: drift; apply: u_in.
have F0 : 0 <= F.
  by apply: sumr_ge0 => i _; have /andP[] := bound _ (point_in y law (u_in (ltn_ord i))).
have FN : F <= m * N%:R.
  rewrite mulr_natr -[N in X in _ <= X]card_ord -sumr_const; apply: ler_sum => i _.
  by have /andP[] := bound _ (point_in y law (u_in (ltn_ord i))).
apply: (@le_trans _ _ (Q y / N%:R * F - r * ed * (Q' y / N%:R * (F' - m)))).
  apply: ler_sub; first exact: best_above.
  by apply: ler_wpmul2l; [rewrite mulr_ge0 | apply: best_below].
have -> : r * ed * (Q' y / N%:R * (F' - m)) =
    r * Q' y / N%:R * (ed * F') - r * ed * m * Q' y / N%:R.
  rewrite mulrBr mulrBr; congr (_ - _); rewrite -!mulrA.
    by congr (_ * _); rewrite mulrCA; congr (_ * _); rewrite mulrCA.
  by do 2! congr (_ * _); rewrite mulrA mulrC.
rewrite opprB addrA [X in X <= _]addrAC ler_add2r ler_subl_addr.
apply: (@le_trans _ _ (m * Num.max 0 (Q y - r * Q' y) + r * Q' y / N%:R * F)); last first.
  by rewrite ler_add2l; apply: ler_wpmul2l => //; rewrite !mulr_ge0 ?invr_ge0 // ltW.
rewrite -ler_subl_addr -!mulrBl.
apply: (@le_trans _ _ (Num.max 0 (Q y - r * Q' y) / N%:R * F)).
  apply: ler_wpmul2r => //; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
  by rewrite le_maxr lexx orbT.
rewrite mulrAC ler_pdivr_mulr // [m * _]mulrC -mulrA; apply: ler_wpmul2l => //.
by rewrite le_maxr lexx.
Qed.

End Steps.

Lemma small_steps (a b c : R) : (forall N, (0 < N)%N -> a <= b + c / N%:R) -> a <= b.
Proof.
move=> le; rewrite leNgt; apply/negP => lt.
have gap : 0 < a - b by rewrite subr_gt0.
have [c0|c0] := lerP c 0.
  by have := lt_le_trans lt (le 1%N isT); rewrite divr1 ltr_addl ltNge c0.
have q0 : 0 <= c / (a - b) by rewrite divr_ge0 // ltW.
have big := archi_boundP q0; set N := Num.bound _ in big.
have N0 : (0 < N)%N by rewrite -(ltr_nat R); apply: le_lt_trans big.
have := le N N0; rewrite -ler_subl_addl ler_pdivl_mulr ?ltr0n // leNgt => /negP; apply.
by move: big; rewrite ltr_pdivr_mulr // mulrC.
Qed.

Lemma sum_option (F : option Y -> R) : \sum_o F o = F None + \sum_y F (Some y).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap (@Some Y) id) /= => [|[]] //.
by apply: eq_bigl => y; rewrite eqxx.
Qed.

(* "sum over y of max(0, A(y) - e^(epsilon1 + d) A'(y)) <= m delta_Q(epsilon1)" *)
Lemma best_close (f f' : R -> R) m Q Q' ed r delta : slopes f f' m -> is_law Q -> is_law Q' ->
  1 <= ed -> 1 <= r ->
  (forall y v, 0 <= v <= 1 -> f' (point Q y v) <= ed * f' (point Q' y v)) ->
  close Q Q' r delta -> close (best_law f Q) (best_law f Q') (r * ed) (m * delta).
Proof.
move=> sl law law' ed1 r1 drift cl.
have ed0 : 0 <= ed by apply: le_trans ed1.
have r0 : 0 <= r by apply: le_trans r1.
have [f0 bound _] := sl.
have m0 : 0 <= m.
  have /andP[a b] := bound 0 (introT andP (conj (lexx 0) ler01)); exact: le_trans a b.
apply/hockey_stick; rewrite sum_option max_l ?add0r; last first.
  by rewrite subr_le0 ler_pemull // -[1]mulr1 ler_pmul.
have /hockey_stick stick := cl.
apply: (@small_steps _ _ (r * ed * m)) => N N0.
apply: (@le_trans _ _ (\sum_y (m * Num.max 0 (Q y - r * Q' y) + r * ed * m * Q' y / N%:R))).
  apply: ler_sum => y _; have [Q'0 _] := law'; rewrite le_maxl (best_step sl N0) // andbT.
  rewrite addr_ge0 // ?mulr_ge0 ?invr_ge0 ?ler0n ?Q'0 //.
  by rewrite le_maxr lexx.
rewrite big_split /= -big_distrr /=; apply: ler_add; first exact: ler_wpmul2l.
rewrite -big_distrl -big_distrr /=; case: law' => _ ->.
by rewrite mulr1.
Qed.

End Best.

(* Sums over all numbers of runs. *)
Section Sums.
Variable R : archiFieldType.
Implicit Types (p q : nat -> R).
Notation total p := (is_Pr p (fun _ : nat => True)).

Let any (s : seq nat) : {in s, forall o, True}. Proof. by []. Qed.

Lemma total_le p q v w : (forall n, p n <= q n) -> total p v -> total q w -> v <= w.
Proof.
move=> le [_ near] [below' _]; rewrite leNgt; apply/negP => lt.
have gap : 0 < v - w by rewrite subr_gt0.
have [s [us _]] := near _ gap; rewrite subKr ltNge => /negP; apply.
by apply: le_trans (below' s us (@any s)); apply: ler_sum.
Qed.

Lemma total_scale p v c : 0 <= c -> total p v -> total (fun n => c * p n) (c * v).
Proof.
move=> c0 [below near]; split=> [s us _|e e0].
  by rewrite -big_distrr /=; apply: ler_wpmul2l => //; apply: below.
move: c0; rewrite le_eqVlt => /orP[/eqP <-|c0].
  by exists [::] => //; rewrite big_nil mul0r sub0r oppr_lt0.
have [s us lt] := near (e / c) (divr_gt0 e0 c0); exists s => //.
by rewrite -big_distrr /= -ltr_pdivr_mull // mulrBr mulKf ?gt_eqF // mulrC.
Qed.

Lemma total_add p q v w : (forall n, 0 <= p n) -> (forall n, 0 <= q n) ->
  total p v -> total q w -> total (fun n => p n + q n) (v + w).
Proof.
move=> p0 q0 [below near] [below' near']; split=> [s us _|e e0].
  by rewrite big_split; apply: ler_add; [apply: below | apply: below'].
have h0 : 0 < e / 2%:R by rewrite divr_gt0 ?ltr0n.
have [s [us _] lt] := near _ h0; have [s' [us' _] lt'] := near' _ h0.
exists (undup (s ++ s')); first by split; first exact: undup_uniq.
have sub : {subset s <= undup (s ++ s')} by move=> n; rewrite mem_undup mem_cat => ->.
have sub' : {subset s' <= undup (s ++ s')} by move=> n; rewrite mem_undup mem_cat orbC => ->.
rewrite big_split /=; have -> : v + w - e = (v - e / 2%:R) + (w - e / 2%:R).
  by rewrite addrACA -opprD -mulrDl -mulr2n -mulr_natr mulfK ?pnatr_eq0.
apply: ltr_add.
  by apply: (lt_le_trans lt); apply: part_sum => //; apply: undup_uniq.
by apply: (lt_le_trans lt'); apply: part_sum => //; apply: undup_uniq.
Qed.

Lemma total_sub p q v w : (forall n, 0 <= q n) -> (forall n, q n <= p n) ->
  total p v -> total q w -> total (fun n => p n - q n) (v - w).
Proof.
move=> q0 qp [below near] [below' near']; split=> [s us _|e e0]; last first.
  have [s us lt] := near e e0; exists s => //; rewrite sumrB addrAC.
  by apply: ltr_le_sub => //; apply: below' => //; case: us.
apply/ler_addgt0Pr => e e0; have [s' [us' _] lt] := near' e e0.
pose U := undup (s ++ s'); have uU : uniq U by apply: undup_uniq.
have sub : {subset s <= U} by move=> n; rewrite mem_undup mem_cat => ->.
have sub' : {subset s' <= U} by move=> n; rewrite mem_undup mem_cat orbC => ->.
apply: (@le_trans _ _ (\sum_(n <- U) (p n - q n))).
  by apply: part_sum => // n; rewrite subr_ge0.
rewrite sumrB -addrA; apply: ler_add; first exact: below.
rewrite ler_oppl opprD opprK ler_subl_addr -ler_subl_addr.
apply: (le_trans (ltW lt)); exact: part_sum.
Qed.

(* A law of the number of runs: P n is the chance of n. f is E[x^K], and f' is the sum of
   n P(n) x^(n-1). *)
Definition runs_law (P : nat -> R) (f f' : R -> R) : Prop :=
  (forall n, 0 <= P n) /\ forall x, 0 <= x <= 1 ->
    total (fun n => P n * x ^+ n) (f x) /\ total (fun n => P n * (x ^+ n.-1 *+ n)) (f' x).

Lemma power_slope (x y : R) n : 0 <= x -> x <= y ->
  x ^+ n + (y - x) * (x ^+ n.-1 *+ n) <= y ^+ n <= x ^+ n + (y - x) * (y ^+ n.-1 *+ n).
Proof.
move=> x0 xy; have y0 := le_trans x0 xy; have d0 : 0 <= y - x by rewrite subr_ge0.
apply/andP; split; [rewrite -ler_subr_addl | rewrite -ler_subl_addl]; rewrite subrXX;
  apply: ler_wpmul2l => //; rewrite -[X in _ *+ X]card_ord -sumr_const; apply: ler_sum => i _;
  have i_le : (i <= n.-1)%N by rewrite -ltnS prednK ?(leq_ltn_trans _ (ltn_ord i)).
- rewrite [X in X <= _](_ : _ = x ^+ (n.-1 - i) * x ^+ i); last by rewrite -exprD subnK.
  by apply: ler_wpmul2r; rewrite ?exprn_ge0 //; apply: ler_expn2r; rewrite ?nnegrE.
- rewrite [X in _ <= X](_ : _ = y ^+ (n.-1 - i) * y ^+ i); last by rewrite -exprD subnK.
  by apply: ler_wpmul2l; rewrite ?exprn_ge0 //; apply: ler_expn2r; rewrite ?nnegrE.
Qed.

(* What the proofs use of a law; m is E[K]. *)
Theorem runs_law_slopes P f f' : runs_law P f f' -> slopes f f' (f' 1).
Proof.
move=> [P0 sums]; have zero : 0 <= (0 : R) <= 1 by rewrite lexx ler01.
have one : 0 <= (1 : R) <= 1 by rewrite lexx ler01.
have t0 (x : R) n k : 0 <= x -> 0 <= P n * (x ^+ k *+ n).
  by move=> x0; rewrite mulr_ge0 // mulrn_wge0 // exprn_ge0.
have e0 (x : R) n : 0 <= x -> 0 <= P n * x ^+ n by move=> x0; rewrite mulr_ge0 // exprn_ge0.
have ge p v : total p v -> 0 <= v.
  by case=> below _; have := below [::] isT (@any [::]); rewrite big_nil.
split=> [|x x01|x y x0 xy y1].
- by case: (sums 0 zero) => /ge.
- have [_ d] := sums x x01; have [_ d1] := sums 1 one; have /andP[x0 x1] := x01.
  rewrite (ge _ _ d) /=; apply: total_le d d1 => n; apply: ler_wpmul2l => //.
  by rewrite ler_wmuln2r // expr1n exprn_ile1.
have x01 : 0 <= x <= 1 by rewrite x0 (le_trans xy).
have y01 : 0 <= y <= 1 by rewrite y1 (le_trans x0).
have y0 : 0 <= y by case/andP: y01.
have [fx dx] := sums x x01; have [fy dy] := sums y y01.
have d0 : 0 <= y - x by rewrite subr_ge0.
rewrite ler_subr_addl ler_subl_addl; apply/andP; split.
  have := total_add (fun n => e0 x n x0) _ fx (total_scale d0 dx).
  move=> /(_ _)-all; apply: (total_le _ (all _) fy) => n.
    rewrite mulrCA -mulrDr; apply: ler_wpmul2l => //.
    by case/andP: (power_slope n x0 xy).
  by rewrite mulr_ge0 // t0.
have := total_add (fun n => e0 x n x0) _ fx (total_scale d0 dy).
move=> /(_ _)-all; apply: (total_le _ fy (all _)) => n.
  rewrite mulrCA -mulrDr; apply: ler_wpmul2l => //.
  by case/andP: (power_slope n x0 xy).
by rewrite mulr_ge0 // t0.
Qed.

(* best_law f is the mean over K of the law of the best of K runs. *)
Theorem best_of_random P f f' (Y : finType) (score : Y -> nat) (Q : Y -> R) y :
  injective score -> is_law Q -> runs_law P f f' ->
  total (fun n => P n * \sum_(runs | best_is score y runs) \prod_(i < n) Q (runs i))
    (best_law score f Q (Some y)).
Proof.
move=> strict law [P0 sums]; have [Q0 _] := law.
have in01 (S : pred Y) : 0 <= \sum_(z | S z) Q z <= 1.
  rewrite sumr_ge0 //=; have [_ <-] := law; rewrite [X in _ <= X](bigID S) /= ler_addl.
  exact: sumr_ge0.
have [up _] := sums _ (in01 (fun z => score z <= score y)%N).
have [low _] := sums _ (in01 (fun z => score z < score y)%N).
have {up low} sub := total_sub _ _ up low.
have eq n : P n * (\sum_(runs | best_is score y runs) \prod_(i < n) Q (runs i)) =
    P n * up_to score Q y ^+ n - P n * below score Q y ^+ n.
  by rewrite best_of_n // mulrBr.
have [below_near b] : total (fun n => P n * up_to score Q y ^+ n - P n * below score Q y ^+ n)
    (best_law score f Q (Some y)).
  apply: sub => n; have /andP[a0 _] := in01 (fun z => score z < score y)%N.
    by rewrite mulr_ge0 // exprn_ge0.
  apply: ler_wpmul2l => //; apply: ler_expn2r; rewrite ?nnegrE //.
    by case/andP: (in01 (fun z => score z <= score y)%N).
  by rewrite -/(up_to score Q y) -/(below score Q y) up_to_below // ler_addl.
split=> [s us sT|e e0]; first by rewrite (eq_bigr _ (fun n _ => eq n)) below_near.
have [s us lt] := b e e0; exists s => //.
by rewrite (eq_bigr _ (fun n _ => eq n)).
Qed.

End Sums.

(* "The release is (epsilon1 + d, delta)-private", with delta = E[K] delta_Q(epsilon1). r, e and ed
   stand for e^epsilon1, for e to the hat of epsilon, and for e^d. *)
Section Laws.
Variables (R : archiFieldType) (D : Type) (neighbors : D -> D -> Prop).
Variables (Y : finType) (score : Y -> nat) (Q : D -> Y -> R) (f f' : R -> R) (m : R).
Hypotheses (strict : injective score) (law : forall d, is_law (Q d)) (sl : slopes f f' m).
Hypothesis both : forall d d', neighbors d d' -> neighbors d' d.
Variables (r e ed delta delta' : R).
Hypotheses (r1 : 1 <= r) (e1 : 1 <= e) (ed1 : 1 <= ed).
Hypotheses (spent : private neighbors Q r delta) (profile : private neighbors Q e delta').

Definition best_of_runs (d : D) : option Y -> R := best_law score f (Q d).

(* "1 - q_u is the chance of an event. With p = 1 - q_u and p' = 1 - q_u', therefore, p' <= e^eps p
   + delta_Q(eps)." *)
Theorem repetition_private :
  (forall x x', 0 <= x <= 1 -> 0 <= x' <= 1 -> 1 - x' <= e * (1 - x) + delta' ->
    f' x <= ed * f' x') ->
  private neighbors best_of_runs (r * ed) (m * delta).
Proof.
move=> drift d d' nb; apply: (best_close strict sl) => // [y v v01|]; last exact: spent.
apply: drift; try exact: point_in.
by apply: point_close => //; [apply: le_trans e1 | apply/profile/both].
Qed.

(* "f'(x) = m (gamma/(1 - (1 - gamma) x))^(1 + eta)" with 1 + eta = a/b: geometric for 2/1,
   logarithmic for 1/1. d is (1 + eta) times the hat of epsilon. *)
Theorem negative_binomial_private (gamma : R) (a b : nat) :
  0 < gamma -> gamma < 1 -> (0 < b)%N ->
  (forall x, 0 <= x <= 1 -> f' x ^+ b = m ^+ b * (gamma / (1 - (1 - gamma) * x)) ^+ a) ->
  (1 - gamma) * delta' <= gamma * (e - 1) -> ed ^+ b = e ^+ a ->
  private neighbors best_of_runs (r * ed) (m * delta).
Proof.
move=> g0 g1 b0 closed small ed_e; apply: repetition_private => x x' x01 x'01 near.
have [_ bound _] := sl; have /andP[fx0 _] := bound x x01; have /andP[fx'0 _] := bound x' x'01.
have e0 : 0 <= e by apply: le_trans e1.
have ed0 : 0 <= ed by apply: le_trans ed1.
have m0 : 0 <= m by have /andP[u v] := bound x x01; apply: le_trans u v.
have c0 : 0 <= 1 - gamma by rewrite subr_ge0 ltW.
have w0 z : 0 <= z <= 1 -> 0 < 1 - (1 - gamma) * z.
  case/andP=> z0 z1; rewrite subr_gt0; apply: (@le_lt_trans _ _ (1 - gamma)).
    by rewrite ler_pimulr.
  by rewrite ltr_subl_addr ltr_addl.
rewrite -(ler_pexpn2r b0) ?nnegrE ?mulr_ge0 // exprMn !closed // ed_e mulrCA.
apply: ler_wpmul2l; first exact: exprn_ge0.
have h0 z : 0 <= z <= 1 -> 0 <= gamma / (1 - (1 - gamma) * z).
  by move=> z01; rewrite divr_ge0 // ltW ?w0.
rewrite -exprMn; apply: ler_expn2r; rewrite ?nnegrE ?(mulr_ge0 e0 (h0 _ _)) ?h0 //.
rewrite mulrCA; apply: ler_wpmul2l; first exact: ltW.
rewrite ler_pdivl_mulr ?w0 // ler_pdivr_mull ?w0 // [X in _ <= X]mulrC.
have as_w z : 1 - (1 - gamma) * z = gamma + (1 - gamma) * (1 - z).
  by rewrite mulrBr mulr1 addrA [gamma + _]addrC subrK.
rewrite !as_w [X in _ <= X]mulrDr.
apply: (@le_trans _ _ (gamma + (1 - gamma) * (e * (1 - x) + delta'))).
  by rewrite ler_add2l; apply: ler_wpmul2l.
rewrite mulrDr [(1 - gamma) * (e * _)]mulrCA addrA [gamma + _]addrC -addrA [X in _ <= X]addrC.
rewrite ler_add2l -ler_subr_addl.
by apply: (le_trans small); rewrite mulrBr mulr1 mulrC.
Qed.

(* "Poisson: f'(x) = mu e^(-mu (1 - x))", "so f'(q_u)/f'(q_u') = e^(mu (p' - p)), and p' - p <=
   delta_Q(0)". exp_mu x stands for e^(mu x). *)
Theorem poisson_private (exp_mu : R -> R) :
  (forall x, 0 <= x <= 1 -> f' x = m * exp_mu (x - 1)) ->
  (forall x y, exp_mu (x + y) = exp_mu x * exp_mu y) ->
  (forall x y, x <= y -> exp_mu x <= exp_mu y) ->
  e = 1 -> ed = exp_mu delta' ->
  private neighbors best_of_runs (r * ed) (m * delta).
Proof.
move=> closed plus mono e_1 ed_e; apply: repetition_private => x x' x01 x'01 near.
have [_ bound _] := sl.
have m0 : 0 <= m by have /andP[u v] := bound x x01; apply: le_trans u v.
rewrite !closed // mulrCA ed_e -plus; apply: ler_wpmul2l => //; apply: mono.
rewrite addrA ler_add2r; move: near.
by rewrite e_1 mul1r -addrA ler_add2l ler_oppl opprD opprK ler_subl_addr addrC.
Qed.

End Laws.
