(* The set margin mechanism: interval, slip, the soft guard, and the cascade.

   Page: docs/proofs/set-margin.md, same order.

   u = e^a and v = e^b, both >= 1; a + b = epsilon / c, so e^epsilon is (u v)^c. *)
From Privmax Require Import Prelude Definitions Scores Exponential LimitedDomain GapTest.

Section SoftGuard.
Variables (R : realFieldType) (O : finType).
(* x = m/n with 0 < m <= n. The power Y^x is root Y ^ m, where root gives the n-th root; real
   numbers have one. e^epsilon = rho ^ n, so e^(x epsilon) = rho ^ m. *)
Variables (m n : nat) (root : R -> R) (rho : R).
Hypotheses (m0 : (0 < m)%N) (mn : (m <= n)%N) (rho1 : 1 <= rho).
Hypothesis root_gt0 : forall y, 0 < y -> 0 < root y.
Hypothesis rootK : forall y, 0 < y -> root y ^+ n = y.

(* "Y = g/(g + W), P(nothing) = Y^x, P(S) = (1 - Y^x) w(S)/W", and 0 for what is not in H. *)
Definition silence (W g : R) : R := root (g / (g + W)) ^+ m.
Definition soft (w : O -> R) (H : {set O}) (g : R) (S : O) : R :=
  if S \in H then (1 - silence (\sum_(T in H) w T) g) * (w S / \sum_(T in H) w T) else 0.

(* psi = (1 - Y^x)/W *)
Definition psi (W g : R) : R := (1 - silence W g) / W.

Let n0 : (0 < n)%N. Proof. exact: leq_trans mn. Qed.

Lemma Y_gt0 (W g : R) : 0 < W -> 0 < g -> 0 < g / (g + W).
Proof. by move=> W0 g0; rewrite divr_gt0 ?addr_gt0. Qed.

Lemma le_root (a b : R) : 0 <= a -> 0 <= b -> a ^+ n <= b ^+ n -> a <= b.
Proof. by move=> a0 b0; rewrite ler_pexpn2r. Qed.

Lemma root_mono (y y' : R) : 0 < y -> 0 < y' -> y <= y' -> root y <= root y'.
Proof.
by move=> y0 y'0 le; apply: le_root; rewrite ?(ltW (root_gt0 _)) // !rootK.
Qed.

Lemma root_lt1 (W g : R) : 0 < W -> 0 < g -> root (g / (g + W)) < 1.
Proof.
move=> W0 g0; have Y0 := Y_gt0 W0 g0; rewrite ltNge; apply/negP => ge.
have : 1 <= root (g / (g + W)) ^+ n by apply: exprn_ege1.
by rewrite rootK // ler_pdivl_mulr ?addr_gt0 // mul1r -subr_ge0 opprD addrA subrr add0r
  oppr_ge0 leNgt W0.
Qed.

(* Geometric sums. *)
Definition geo (k : nat) (z : R) : R := \sum_(i < k) z ^+ i.

Lemma one_minus (z : R) k : 1 - z ^+ k = (1 - z) * geo k z.
Proof. by rewrite -opprB subrX1 -mulNr opprB. Qed.

Lemma geo_gt0 z k : (0 < k)%N -> 0 < z -> 0 < geo k z.
Proof.
move=> k0 z0; rewrite /geo -(prednK k0) big_ord_recl expr0; rewrite ltr_paddr ?ltr01 //.
by apply: sumr_ge0 => i _; rewrite exprn_ge0 // ltW.
Qed.

(* psi g as a function of the n-th root z of Y alone. *)
Definition level (z : R) : R := geo m z * z ^+ n / geo n z.

Lemma psi_level (W g : R) : 0 < W -> 0 < g -> psi W g * g = level (root (g / (g + W))).
Proof.
move=> W0 g0; have Y0 := Y_gt0 W0 g0; have z0 := root_gt0 Y0; have z1 := root_lt1 W0 g0.
rewrite /psi /silence /level; set z := root _ in z0 z1 *.
have zn : z ^+ n = g / (g + W) by rewrite rootK.
have e1 : 1 - z != 0 by rewrite gt_eqF ?subr_gt0.
have Wn : W != 0 by rewrite gt_eqF.
have gW : g + W != 0 by rewrite gt_eqF ?addr_gt0.
have W_eq : W / (g + W) = (1 - z) * geo n z.
  by rewrite -one_minus zn -{1}(divff gW) -mulrBl addrAC subrr add0r.
have geoM : geo m z = (1 - z ^+ m) / (1 - z) by rewrite one_minus mulrAC divff ?mul1r.
have geoN : geo n z = W / (g + W) / (1 - z) by rewrite W_eq mulrAC divff ?mul1r.
rewrite geoM geoN zn !invf_div.
rewrite [RHS]mulrACA divfK // [g / _ * _]mulrA divfK //.
by rewrite mulrAC mulrA.
Qed.

(* "-ln psi also grows in each of ln W and ln g": psi g falls when W grows, for then z falls. *)
Lemma level_mono z z' : 0 < z' -> z' <= z -> level z' <= level z.
Proof.
move=> z'0 le; have z0 : 0 < z by apply: lt_le_trans le.
have G k (y : R) : 0 < y -> 0 <= geo k y by move=> y0; apply: sumr_ge0 => i _;
  rewrite exprn_ge0 // ltW.
rewrite /level ler_pdivl_mulr ?geo_gt0 // mulrAC ler_pdivr_mulr ?geo_gt0 //.
rewrite -!mulrA; apply: ler_pmul; rewrite ?mulr_ge0 ?G ?exprn_ge0 ?(ltW z'0) ?(ltW z0) //.
  by apply: ler_sum => i _; apply: ler_expn2r; rewrite ?nnegrE ?(ltW z0) ?(ltW z'0).
rewrite /geo !big_distrr /=; apply: ler_sum => i _.
have ni : n = (i + (n - i))%N by rewrite subnKC // ltnW.
have powers (y : R) : y ^+ n = y ^+ i * y ^+ (n - i) by rewrite -exprD -ni.
rewrite !powers [X in X <= _]mulrAC [X in _ <= X]mulrAC [z ^+ i * _]mulrC.
apply: ler_wpmul2l; first by rewrite mulr_ge0 ?exprn_ge0 ?(ltW z0) ?(ltW z'0).
by apply: ler_expn2r; rewrite ?nnegrE ?(ltW z0) ?(ltW z'0).
Qed.

(* "psi g = (1 - (1 + v)^(-x))/v <= x" *)
Lemma level_le z : 0 < z -> z <= 1 -> level z <= m%:R / n%:R.
Proof.
move=> z0 z1; have nR : 0 < n%:R :> R by rewrite ltr0n.
rewrite /level -mulrA; apply: ler_pmul.
- by apply: sumr_ge0 => i _; rewrite exprn_ge0 // ltW.
- by rewrite divr_ge0 ?exprn_ge0 ?(ltW z0) ?(ltW (geo_gt0 n0 z0)).
- apply: (@le_trans _ _ (\sum_(i < m) 1)); last by rewrite sumr_const card_ord.
  by apply: ler_sum => i _; apply: exprn_ile1; rewrite ?(ltW z0).
rewrite ler_pdivr_mulr ?geo_gt0 // ler_pdivl_mull // mulr_natl.
rewrite -[X in _ *+ X]card_ord -sumr_const; apply: ler_sum => i _.
by apply: ler_wiexpn2l; rewrite ?(ltW z0) // ltnW.
Qed.

Lemma silence_in (W g : R) : 0 < W -> 0 < g -> 0 < silence W g < 1.
Proof.
move=> W0 g0; have Y0 := Y_gt0 W0 g0; rewrite /silence exprn_gt0 ?root_gt0 //=.
by rewrite exprn_ilt1 ?root_lt1 ?(ltW (root_gt0 Y0)) // -lt0n.
Qed.

Lemma psi_gt0 (W g : R) : 0 < W -> 0 < g -> 0 < psi W g.
Proof. by move=> W0 g0; rewrite divr_gt0 // subr_gt0; case/andP: (silence_in W0 g0). Qed.

(* "(b) psi g <= x" *)
Lemma psi_guard (W g : R) : 0 < W -> 0 < g -> psi W g * g <= m%:R / n%:R.
Proof.
by move=> W0 g0; rewrite psi_level // level_le ?root_gt0 ?Y_gt0 // ltW // root_lt1.
Qed.

Lemma psi_fall_W (W W' g : R) : 0 < W -> W <= W' -> 0 < g -> psi W' g <= psi W g.
Proof.
move=> W0 le g0; have W'0 : 0 < W' by apply: lt_le_trans le.
rewrite -(ler_pmul2r g0) !psi_level //; apply: level_mono; first by rewrite root_gt0 ?Y_gt0.
apply: root_mono; rewrite ?Y_gt0 //; apply: ler_wpmul2l; first exact: ltW.
by rewrite lef_pinv ?posrE ?addr_gt0 // ler_add2l.
Qed.

Lemma psi_fall_g (W g g' : R) : 0 < W -> 0 < g -> g <= g' -> psi W g' <= psi W g.
Proof.
move=> W0 g0 le; have g'0 : 0 < g' by apply: lt_le_trans le.
rewrite /psi ler_pmul2r ?invr_gt0 // ler_add2l ler_opp2 /silence.
apply: ler_expn2r; rewrite ?nnegrE ?(ltW (root_gt0 _)) ?Y_gt0 //; apply: root_mono;
  rewrite ?Y_gt0 //.
rewrite ler_pdivr_mulr ?addr_gt0 // mulrAC ler_pdivl_mulr ?addr_gt0 //.
by rewrite !mulrDr [g' * g]mulrC ler_add2l ler_pmul2r.
Qed.

(* "-ln psi grows by s if both grow by s" *)
Lemma psi_scale (k W g : R) : 0 < k -> psi (k * W) (k * g) = k^-1 * psi W g.
Proof.
move=> k0; rewrite /psi /silence -mulrDr -mulf_div divff ?gt_eqF // mul1r invfM.
by rewrite mulrCA.
Qed.

(* "Hence if ln W and ln g move by amounts in I, so does -ln psi." *)
Lemma psi_within (A r W W' g g' : R) : 0 < A -> 0 < r -> 0 < W -> 0 < g -> 0 < W' -> 0 < g' ->
  within A r W W' -> within A r g g' -> within A r (psi W g)^-1 (psi W' g')^-1.
Proof.
move=> A0 r0 W0 g0 W'0 g'0 [W1 W2] [g1 g2].
have low : psi W' g' <= A^-1 * psi W g.
  rewrite -psi_scale //; apply: (@le_trans _ _ (psi W' (A * g))).
    by apply: psi_fall_g; rewrite ?mulr_gt0.
  by apply: psi_fall_W; rewrite ?mulr_gt0.
have high : (A * r)^-1 * psi W g <= psi W' g'.
  rewrite -psi_scale ?mulr_gt0 //; apply: (@le_trans _ _ (psi W' (A * r * g))).
    by apply: psi_fall_W; rewrite ?mulr_gt0.
  by apply: psi_fall_g.
have p0 := psi_gt0 W0 g0; have p'0 := psi_gt0 W'0 g'0.
have Ar0 : 0 < A * r by rewrite mulr_gt0.
have a0 : 0 < A^-1 * psi W g by apply: mulr_gt0; rewrite ?invr_gt0.
have b0 : 0 < (A * r)^-1 * psi W g by apply: mulr_gt0; rewrite ?invr_gt0.
split.
  by rewrite -[A]invrK -invfM lef_pinv ?posrE.
by rewrite -[A * r]invrK -invfM lef_pinv ?posrE.
Qed.

(* "Lemma 3. For one stage at (epsilon, delta): (a) P(S) <= e^epsilon P'(S) for all S in both
   domains; (b) the sum of P(S) is at most delta over the S in H and not in H'." B bounds the weight
   of those; g = (x/delta) B. *)
Theorem soft_guard (w w' : O -> R) (H H' : {set O}) (A g g' delta B : R) :
  0 < A -> (forall S, 0 < w S) -> (forall S, 0 < w' S) -> 0 < g -> 0 < g' ->
  0 < \sum_(S in H) w S -> 0 < \sum_(S in H') w' S ->
  (forall S, S \in H -> S \in H' -> within A (rho ^+ n) (w S) (w' S)) ->
  within A (rho ^+ n) (\sum_(S in H) w S) (\sum_(S in H') w' S) -> within A (rho ^+ n) g g' ->
  \sum_(S in H :\: H') w S <= B -> m%:R / n%:R * B <= delta * g ->
  close (soft w H g) (soft w' H' g') (rho ^+ n) delta.
Proof.
move=> A0 w0 w'0 g0 g'0 W0 W'0 ww WW gg slip guard.
have r0 : 0 < rho ^+ n by rewrite exprn_gt0 // (lt_le_trans ltr01).
have soft_psi (v : O -> R) (G : {set O}) k S : S \in G ->
  soft v G k S = v S * psi (\sum_(T in G) v T) k.
  by move=> SG; rewrite /soft SG /psi mulrCA.
have p0 : 0 < psi (\sum_(S in H) w S) g by apply: psi_gt0.
have p'0 : 0 < psi (\sum_(S in H') w' S) g' by apply: psi_gt0.
have ge0 S : 0 <= soft w H g S.
  case: (boolP (S \in H)) => [SH|/negbTE SH]; last by rewrite /soft SH.
  by rewrite soft_psi // mulr_ge0 // ltW.
have ge0' S : 0 <= soft w' H' g' S.
  case: (boolP (S \in H')) => [SH|/negbTE SH]; last by rewrite /soft SH.
  by rewrite soft_psi // mulr_ge0 // ltW.
apply: (close_but_for (B := H :\: H')) => // [|S|]; first exact: ltW.
  rewrite inE negb_and negbK; case: (boolP (S \in H)) => [SH|SH _] /=; last first.
    by rewrite {1}/soft (negbTE SH) mulr_ge0 // ltW.
  rewrite orbF => SH'; rewrite !soft_psi //.
  rewrite -[psi (\sum_(T in H) w T) g]invrK -[psi (\sum_(T in H') w' T) g']invrK.
  apply: (within_ratio A0); rewrite ?invr_gt0 ?(ltW (w0 _)) ?(ltW r0) //; first exact: ww.
  exact: psi_within.
rewrite /Pr (eq_bigr (fun S => w S * psi (\sum_(T in H) w T) g)); last first.
  by move=> S; rewrite inE => /andP[_ SH]; rewrite soft_psi.
rewrite -big_distrl /= -(ler_pmul2r g0) -mulrA.
apply: (@le_trans _ _ (B * (m%:R / n%:R))); last by rewrite mulrC.
apply: ler_pmul => //; last exact: psi_guard.
  by apply: sumr_ge0 => S _; apply: ltW.
by rewrite mulr_ge0 // ltW.
Qed.

(* "(c) P(nothing) <= e^(x epsilon) P'(nothing). Y moves by a factor of at most e^epsilon, and Y^x
   of e^(x epsilon)." *)
Theorem soft_silence (A W W' g g' : R) : 0 < A -> 0 < W -> 0 < W' -> 0 < g -> 0 < g' ->
  within A (rho ^+ n) W W' -> within A (rho ^+ n) g g' -> silence W g <= rho ^+ m * silence W' g'.
Proof.
move=> A0 W0 W'0 g0 g'0 WW gg; have rho0 : 0 < rho by apply: lt_le_trans rho1.
have z0 := root_gt0 (Y_gt0 W0 g0); have z'0 := root_gt0 (Y_gt0 W'0 g'0).
rewrite /silence -exprMn; apply: ler_expn2r; rewrite ?nnegrE ?mulr_ge0 ?(ltW rho0) ?(ltW z0)
  ?(ltW z'0) //.
apply: le_root; rewrite ?mulr_ge0 ?(ltW rho0) ?(ltW z0) ?(ltW z'0) //.
rewrite exprMn !rootK ?Y_gt0 //; apply: (within_ratio A0);
  rewrite ?addr_gt0 ?(ltW g0) ?exprn_ge0 ?(ltW rho0) //.
exact: within_add.
Qed.

End SoftGuard.

(* "Cascade. Stages 1 ... J, each run only if all before it gave nothing." *)
Section Cascade.
Variables (R : realFieldType) (O : finType).
(* Stages of some type T: the probability of each set and of nothing, in D and in D'; e^(x_j
   epsilon_j); and delta_j. *)
Variables (T : Type) (released released' : T -> O -> R) (nothing nothing' : T -> R).
Variables (factor loss : T -> R).

(* The outcome of a cascade of n stages: at which stage, and what; or nothing at all. *)
Fixpoint outcome (n : nat) : finType :=
  if n is n'.+1 then [finType of (O + outcome n')%type] else [finType of unit].

Fixpoint cascade (first : T -> O -> R) (none : T -> R) (s : seq T) : outcome (size s) -> R :=
  match s with
  | [::] => fun _ => 1
  | a :: s' => fun o => match o with
    | inl A => first a A
    | inr o' => none a * cascade first none o'
    end
  end.

Lemma Pr_cascade (first : T -> O -> R) (none : T -> R) a s (S : {set outcome (size (a :: s))}) :
  Pr (@cascade first none (a :: s)) S =
  Pr (first a) [set o | inl o \in S] + none a * Pr (@cascade first none s) [set o | inr o \in S].
Proof.
rewrite /Pr big_sumType /=; congr (_ + _); first by apply: eq_bigl => o; rewrite inE.
by rewrite -big_distrr /=; congr (_ * _); apply: eq_bigl => o; rewrite inE.
Qed.

Lemma cascade_law (first : T -> O -> R) (none : T -> R) s :
  foldr (fun a P => [/\ forall A, 0 <= first a A, 0 <= none a,
    \sum_A first a A + none a = 1 & P]) True s -> is_law (@cascade first none s).
Proof.
elim: s => [_|a s IH] /=.
  split=> [o|]; first exact: ler01.
  by rewrite (big_pred1 tt) // => -[].
case=> f0 n0 sum1 /IH[c0 c1]; split=> [[A|o]|]; first exact: f0.
  by rewrite mulr_ge0.
by rewrite big_sumType /= -big_distrr /= c1 mulr1.
Qed.

(* epsilon_j of the first of some stages is what they and all that follow may spend: the product of
   the factors of silence, because "epsilon_(j+1) = (1 - x_j) epsilon_j" and "x_J = 1". *)
Fixpoint spent (s : seq T) : R := if s is a :: s' then factor a * spent s' else 1.
Fixpoint losses (s : seq T) : R := if s is a :: s' then loss a + losses s' else 0.

(* (a), (b) and (c) of lemma 3 or lemma 5, with e^epsilon_j = spent (the stage and all after it). *)
Fixpoint sound (s : seq T) : Prop :=
  if s is a :: s' then
    [/\ close (released a) (released' a) (spent (a :: s')) (loss a),
        nothing a <= factor a * nothing' a /\ 0 <= nothing a <= 1,
        0 <= nothing' a /\ (forall A, 0 <= released' a A),
        1 <= factor a /\ 0 <= loss a & sound s']
  else True.

Lemma spent_ge1 s : sound s -> 1 <= spent s.
Proof.
by elim: s => [|a s IH] //= [_ _ _ [f1 _] /IH s1]; rewrite mulr_ege1.
Qed.

Lemma losses_ge0 s : sound s -> 0 <= losses s.
Proof. by elim: s => [|a s IH] //= [_ _ _ [_ l0] /IH s0]; rewrite addr_ge0. Qed.

Lemma cascade_ge0 s o : sound s -> 0 <= @cascade released' nothing' s o.
Proof.
elim: s o => [|a s IH] o; first by rewrite /= ler01.
case=> _ _ [n'0 r'0] _ snd; case: o => [A|o] /=; first exact: r'0.
by rewrite mulr_ge0 // IH.
Qed.

(* "Theorem. The cascade is (epsilon, the sum of delta_j)-differentially private, the number of the
   stage included." *)
Theorem cascade_close s : sound s ->
  close (@cascade released nothing s) (@cascade released' nothing' s) (spent s) (losses s).
Proof.
elim: s => [|a s IH] snd S /=; first by rewrite mul1r addr0.
case: snd => cl [sil /andP[n0 n1]] [n'0 r'0] [f1 l0] snd; have {}IH := IH snd.
rewrite !Pr_cascade mulrDr addrACA; apply: ler_add; first exact: cl.
have s1 := spent_ge1 snd; have l0' := losses_ge0 snd.
set rest := [set o | inr o \in S]; have IHT := IH rest.
apply: (le_trans (ler_wpmul2l n0 IHT)); rewrite mulrDr; apply: ler_add; last by rewrite ler_pimull.
rewrite [X in X <= _]mulrA [X in _ <= X]mulrA; apply: ler_wpmul2r.
  by apply: Pr_ge0 => o; apply: cascade_ge0.
by rewrite mulrAC; apply: ler_wpmul2r => //; apply: le_trans s1.
Qed.

End Cascade.

(* Sets of k of the top kbar candidates, and what they weigh. *)
Section Sets.
Variables (R : realFieldType) (I : finType) (u v : R) (c : int) (k kbar : nat).
Hypotheses (u1 : 1 <= u) (v1 : 1 <= v) (k0 : (0 < k)%N) (kI : (k < #|I|)%N).
Implicit Types (q : I -> int) (i j : I).

Let up n : 0 < u ^ n. Proof. by rewrite exprz_gt0 // (lt_le_trans ltr01). Qed.
Let vp n : 0 < v ^ n. Proof. by rewrite exprz_gt0 // (lt_le_trans ltr01). Qed.

(* "m(S) is the score at its last one and M(S) that at the first it does not contain" *)
Definition last_rank q (S : {set I}) : nat := \max_(i in S) rank q i.
Definition first_missing q (S : {set I}) : nat := find (predC (mem S)) (ranking q).
Definition worst q (S : {set I}) : int := stat q (last_rank q S).
Definition best_outside q (S : {set I}) : int := stat q (first_missing q S).

(* "w(S) = exp(a m(S) - b M(S))" *)
Definition set_weight q (S : {set I}) : R := u ^ worst q S * v ^ (- best_outside q S).

(* "for S of k candidates of H" *)
Definition choices q : {set {set I}} := [set S : {set I} | (S \subset top q kbar) && (#|S| == k)].

Lemma choices_card q (S : {set I}) : S \in choices q -> #|S| = k.
Proof. by rewrite inE => /andP[_ /eqP]. Qed.

Lemma missing_lt q (S : {set I}) : #|S| = k -> (first_missing q S < #|I|)%N.
Proof.
move=> cS; rewrite /first_missing -(size_ranking q) -has_find.
have : (#|S| < #|I|)%N by rewrite cS.
rewrite -cardsT; case: (eqVneq S setT) => [->|ne _]; first by rewrite ltnn.
have /subsetPn[i _ iS] : ~~ (setT \subset S) by rewrite subTset.
by apply/hasP; exists i; rewrite ?mem_ranking.
Qed.

Lemma last_lt q (S : {set I}) : (last_rank q S < #|I|)%N.
Proof.
have K0 : (0 < #|I|)%N by apply: leq_ltn_trans kI.
rewrite -(prednK K0) ltnS; apply/bigmax_leqP => i _.
by rewrite -ltnS prednK // rank_lt.
Qed.

(* "m(S) = min inside S, M(S) = max outside S" *)
Lemma worst_min q (S : {set I}) : #|S| = k ->
  (exists2 i, i \in S & q i = worst q S) /\ forall i, i \in S -> worst q S <= q i.
Proof.
move=> cS; split=> [|i iS].
  have S0 : (0 < #|S|)%N by rewrite cS.
  have [i iS e] := eq_bigmax_cond (rank q) S0.
  by exists i => //; rewrite /worst /last_rank e stat_rank.
by rewrite -(stat_rank q i) stat_le ?last_lt // leq_bigmax_cond.
Qed.

Lemma outside_max q (S : {set I}) : #|S| = k ->
  (exists2 i, i \notin S & q i = best_outside q S) /\
  forall i, i \notin S -> q i <= best_outside q S.
Proof.
move=> cS; have lt := missing_lt q cS.
have [i0 _] : exists i0 : I, true.
  by case: (pickP (mem I)) => [i _|/eq_card0 K0]; [exists i | move: lt; rewrite K0].
split=> [|i iS].
  exists (nth i0 (ranking q) (first_missing q S)); last by rewrite -stat_nth.
  have := @nth_find _ i0 (predC (mem S)) (ranking q); rewrite has_find size_ranking.
  by move/(_ lt).
rewrite -(stat_rank q i) stat_le ?rank_lt // leqNgt; apply/negP => bf.
by have := before_find i bf; rewrite nth_rank /= iS.
Qed.

(* "Lemma 1. For neighbors D, D' there is an interval I of length epsilon with: ln w(S) moves by an
   amount in I for every S of k candidates, and so do ln W and ln g." The interval of factors begins
   at low. *)
Definition low (lo : int) : R := u ^ lo * v ^ (- (lo + c)).

Lemma low_gt0 lo : 0 < low lo. Proof. by rewrite mulr_gt0. Qed.

Lemma pair_within lo (x x' y y' : int) : lo <= x' - x <= lo + c -> lo <= y' - y <= lo + c ->
  within (low lo) ((u * v) ^ c) (u ^ x * v ^ (- y)) (u ^ x' * v ^ (- y')).
Proof.
move=> hx hy; have [ux1 ux2] := power_within u1 hx.
have hy' : - (lo + c) <= (- y') - (- y) <= - (lo + c) + c.
  have -> : - y' - - y = - (y' - y) by rewrite opprK opprB addrC.
  have -> : - (lo + c) + c = - lo by rewrite opprD subrK.
  by case/andP: hy => a b; rewrite !ler_opp2 a b.
have [vy1 vy2] := power_within v1 hy'.
have un : u != 0 by rewrite gt_eqF // (lt_le_trans ltr01).
have vn : v != 0 by rewrite gt_eqF // (lt_le_trans ltr01).
split; rewrite /low.
  by rewrite mulrACA; apply: ler_pmul; rewrite ?mulr_ge0 ?(ltW (up _)) ?(ltW (vp _)).
rewrite expfzMl (_ : _ * _ * (u ^ x * v ^ (- y)) = (u ^ lo * u ^ c * u ^ x) *
  (v ^ (- (lo + c)) * v ^ c * v ^ (- y))).
  by apply: ler_pmul; rewrite ?mulr_ge0 ?(ltW (up _)) ?(ltW (vp _)).
by rewrite [u ^ lo * v ^ _ * (u ^ c * v ^ c)]mulrACA [LHS]mulrACA.
Qed.

Lemma set_weight_gt0 q (S : {set I}) : 0 < set_weight q S.
Proof. by rewrite mulr_gt0. Qed.

Lemma worst_moves lo q q' (S : {set I}) : moves lo c q q' -> #|S| = k ->
  lo <= worst q' S - worst q S <= lo + c.
Proof.
move=> nb cS; have [[i iS ei] mi] := worst_min q cS; have [[j jS ej] mj] := worst_min q' cS.
rewrite ler_subr_addr ler_subl_addr; apply/andP; split.
  rewrite -ej; have /andP[a _] := nb j; rewrite ler_subr_addr in a.
  by apply: le_trans a; rewrite ler_add2l mi.
rewrite -ei; have /andP[_ b] := nb i; rewrite ler_subl_addr in b.
by apply: le_trans b; apply: mj.
Qed.

Lemma outside_moves lo q q' (S : {set I}) : moves lo c q q' -> #|S| = k ->
  lo <= best_outside q' S - best_outside q S <= lo + c.
Proof.
move=> nb cS; have [[i iS ei] mi] := outside_max q cS; have [[j jS ej] mj] := outside_max q' cS.
rewrite ler_subr_addr ler_subl_addr; apply/andP; split.
  rewrite -ei; have /andP[a _] := nb i; rewrite ler_subr_addr in a.
  by apply: (le_trans a); apply: mj.
rewrite -ej; have /andP[_ b] := nb j; rewrite ler_subl_addr in b.
by apply: (le_trans b); rewrite ler_add2l mi.
Qed.

Theorem set_weight_within lo q q' (S : {set I}) : moves lo c q q' -> #|S| = k ->
  within (low lo) ((u * v) ^ c) (set_weight q S) (set_weight q' S).
Proof. by move=> nb cS; apply: pair_within; [apply: worst_moves | apply: outside_moves]. Qed.

(* "W is a sum of such terms: a set S of H is a set of ranks." The candidate of D' with the rank
   that i has in D. *)
Definition same_rank q q' i : I := nth i (ranking q') (rank q i).

Lemma rank_same q q' i : rank q' (same_rank q q' i) = rank q i.
Proof. by rewrite /same_rank rank_nth // rank_lt. Qed.

Lemma same_inj q q' : injective (same_rank q q').
Proof. by move=> i j e; apply: (@rank_inj _ q); rewrite -!(rank_same q q') e. Qed.

Lemma someone : exists i0 : I, true.
Proof. by case: (pickP (mem I)) => [i _|/eq_card0 K0]; [exists i | move: kI; rewrite K0]. Qed.

Lemma same_ranking q q' : ranking q' = map (same_rank q q') (ranking q).
Proof.
have [i0 _] := someone; apply: (@eq_from_nth _ i0); rewrite ?size_map ?size_ranking // => r rK.
rewrite (nth_map i0) ?size_ranking // /same_rank rank_nth //.
by apply: set_nth_default; rewrite size_ranking.
Qed.

Lemma same_last q q' (S : {set I}) : last_rank q' (same_rank q q' @: S) = last_rank q S.
Proof.
rewrite /last_rank big_imset /=; last by move=> i j _ _; apply: same_inj.
by apply: eq_bigr => i _; rewrite rank_same.
Qed.

Lemma same_missing q q' (S : {set I}) :
  first_missing q' (same_rank q q' @: S) = first_missing q S.
Proof.
rewrite /first_missing (same_ranking q q') find_map; apply: eq_find => i /=.
by rewrite mem_imset //; apply: same_inj.
Qed.

Lemma same_choice q q' (S : {set I}) : (same_rank q q' @: S \in choices q') = (S \in choices q).
Proof.
rewrite !inE card_imset; last exact: same_inj.
congr (_ && _); apply/subsetP/subsetP => sub i iS.
  by have := sub _ (imset_f (same_rank q q') iS); rewrite !inE rank_same.
by case/imsetP: iS => j jS ->; have := sub _ jS; rewrite !inE rank_same.
Qed.

Definition all_weight q : R := \sum_(S in choices q) set_weight q S.

Theorem all_weight_within lo q q' : moves lo c q q' ->
  within (low lo) ((u * v) ^ c) (all_weight q) (all_weight q').
Proof.
move=> nb; rewrite /all_weight [X in within _ _ _ X](reindex_inj (imset_inj (@same_inj q q'))) /=.
rewrite [X in within _ _ _ X](eq_bigl (mem (choices q))); last by move=> S; apply: same_choice.
apply: within_sum => S /choices_card cS.
rewrite /set_weight /worst /best_outside same_last same_missing.
by apply: pair_within; apply: stat_moves; rewrite ?last_lt ?missing_lt.
Qed.

Lemma all_weight_gt0 q : (k <= #|I|)%N -> (k <= kbar)%N -> 0 < all_weight q.
Proof.
move=> kI' kb; have inS : top q k \in choices q.
  by rewrite inE top_sub // card_top ?eqxx.
rewrite /all_weight (bigD1 _ inS) /= ltr_paddr ?set_weight_gt0 //.
by apply: sumr_ge0 => S _; apply/ltW/set_weight_gt0.
Qed.

Hypotheses (kk : (k < kbar)%N) (kK : (kbar < #|I|)%N).

(* "B = e^(a(f+c)) [ e^(-b(q_(k)-c)) + the sum over h < k of C(kbar-h-1, k-h) e^(-b q_(h+1)) ]" *)
Definition bound q : R :=
  u ^ (stat q kbar + c) *
  (v ^ (- (stat q k.-1 - c)) + \sum_(h < k) 'C(kbar - h - 1, k - h)%:R * v ^ (- stat q h)).

Let k1K : (k.-1 < #|I|)%N.
Proof. exact: leq_ltn_trans (leq_pred k) (ltn_trans kk kK). Qed.

Lemma bound_gt0 q : 0 < bound q.
Proof.
rewrite mulr_gt0 // ltr_paddr //; apply: sumr_ge0 => h _.
by rewrite mulr_ge0 ?ler0n ?(ltW (vp _)).
Qed.

Theorem bound_within lo q q' : moves lo c q q' ->
  within (low lo) ((u * v) ^ c) (bound q) (bound q').
Proof.
move=> nb; have un : u != 0 by rewrite gt_eqF // (lt_le_trans ltr01).
have vn : v != 0 by rewrite gt_eqF // (lt_le_trans ltr01).
have term e h : u ^ (stat e kbar + c) * v ^ (- stat e h) = u ^ c *
  (u ^ stat e kbar * v ^ (- stat e h)).
  by rewrite expfzDr // [u ^ stat e kbar * u ^ c]mulrC mulrA.
rewrite /bound !mulrDr; apply: within_add.
  rewrite !opprB ![c - _]addrC !(expfzDr _ _ vn) !mulrA !term ![_ * v ^ c]mulrC.
  apply: within_scale; first exact/ltW/vp.
  apply: within_scale; first exact/ltW/up.
  by apply: pair_within; apply: stat_moves.
rewrite !big_distrr /=; apply: within_sum => h _; rewrite !(mulrCA (u ^ _)) !term.
apply: within_scale; first exact: ler0n.
apply: within_scale; first exact/ltW/up.
apply: pair_within; apply: stat_moves => //.
exact: ltn_trans (ltn_ord h) (ltn_trans kk kK).
Qed.

(* "Let S contain ranks 1 ... h and not rank h + 1": everybody before the first that is missing is
   in S. *)
Lemma prefix_in q (S : {set I}) : #|S| = k -> top q (first_missing q S) \subset S.
Proof.
move=> cS; apply/subsetP => i; rewrite inE => lt.
by have := before_find i lt; rewrite nth_rank /= => /negbFE.
Qed.

Lemma missing_le q (S : {set I}) : #|S| = k -> (first_missing q S <= k)%N.
Proof.
move=> cS; have := subset_leq_card (prefix_in q cS).
by rewrite card_top ?cS // ltnW // missing_lt.
Qed.

Lemma missing_out q (S : {set I}) i : #|S| = k -> rank q i = first_missing q S -> i \notin S.
Proof.
move=> cS e; have lt := missing_lt q cS.
have := @nth_find _ i (predC (mem S)) (ranking q); rewrite has_find size_ranking => /(_ lt) /=.
by rewrite -/(first_missing q S) -e nth_rank.
Qed.

(* "The other k - h members are among ranks h + 2 ... kbar: there are C(kbar-h-1, k-h) such
   sets." *)
Lemma count_missing q (h : nat) : (h < k)%N ->
  (#|[set S in choices q | first_missing q S == h]| <= 'C(kbar - h - 1, k - h))%N.
Proof.
move=> hk; have hkb := ltn_trans hk kk; have hK := ltn_trans hkb kK.
pose X := top q kbar :\: top q h.+1.
have cX : #|X| = (kbar - h - 1)%N.
  rewrite cardsD (setIidPr (top_sub q hkb)) !card_top ?(ltnW kK) //.
  by rewrite -subnDA addn1.
rewrite -cX -cards_draws.
have inj : {in [set S in choices q | first_missing q S == h] &, injective (fun S => S :\: top q h)}.
  move=> S T; rewrite !inE => /andP[/andP[_ /eqP cS] /eqP hS] /andP[/andP[_ /eqP cT] /eqP hT] e.
  have pS := prefix_in q cS; have pT := prefix_in q cT; rewrite hS in pS; rewrite hT in pT.
  by rewrite -(setID S (top q h)) -(setID T (top q h)) e (setIidPr pS) (setIidPr pT).
rewrite -(card_in_imset inj); apply: subset_leq_card; apply/subsetP => T /imsetP[S].
rewrite !inE => /andP[/andP[sub /eqP cS] /eqP hS] ->.
have pS := prefix_in q cS; rewrite hS in pS.
apply/andP; split; last by rewrite cardsD (setIidPr pS) card_top ?cS // ltnW.
apply/subsetP => i; rewrite !inE -!leqNgt => /andP[hi iS].
have ib := subsetP sub i iS; rewrite inE in ib; rewrite ib andbT ltn_neqAle hi andbT.
by apply: contraL iS => /eqP e; apply: (missing_out (q := q) cS); rewrite hS.
Qed.

(* "Lemma 2. The sets S in H with S not in H' have a weight of at most B together." *)
Theorem slip_bound lo q q' : moves lo c q q' ->
  \sum_(S in choices q :\: choices q') set_weight q S <= bound q.
Proof.
move=> nb; have un : u != 0 by rewrite gt_eqF // (lt_le_trans ltr01).
set f := stat q kbar.
(* "who leaves has q_i <= f + c, so m(S) <= f + c" *)
have leaver S : S \in choices q :\: choices q' -> exists2 i, i \in S & q i <= f + c.
  rewrite !inE => /andP[out /andP[sub cS]]; move: out; rewrite cS andbT => /subsetPn[i iS iH'].
  by exists i => //; apply: (slip_le nb kK _ iH'); apply: (subsetP sub).
pose part S : R := if (first_missing q S < k)%N then v ^ (- stat q (first_missing q S))
  else v ^ (- (stat q k.-1 - c)).
apply: (@le_trans _ _ (\sum_(S in choices q :\: choices q') u ^ (f + c) * part S)).
  apply: ler_sum => S slip; have [i iS le] := leaver S slip.
  have cS : #|S| = k by move: slip; rewrite inE => /andP[_ /choices_card].
  have [_ low_S] := worst_min q cS.
  apply: ler_pmul; rewrite ?(ltW (up _)) ?(ltW (vp _)) //.
    by apply: ler_weexpz2l => //; apply: le_trans le; apply: low_S.
  rewrite /part; case: ltnP => // ge; apply: ler_weexpz2l => //.
  (* "Otherwise S = S*. Then q_(k) <= q_i <= f + c, and M(S) = q_(k+1) >= f >= q_(k) - c." *)
  have eh : first_missing q S = k by apply/eqP; rewrite eqn_leq missing_le.
  have eS : S = top q k.
    apply/eqP; rewrite eq_sym eqEcard -{1}eh prefix_in //= cS card_top ?leqnn //.
    exact: ltnW (ltn_trans kk kK).
  rewrite ler_opp2 /best_outside eh ler_subl_addr; apply: (@le_trans _ _ (f + c)); last first.
    by rewrite ler_add2r stat_le // ltnW.
  apply: le_trans le; rewrite -(stat_rank q i) stat_le //.
  by move: iS; rewrite eS inE -{1}(prednK k0) ltnS.
rewrite -big_distrr /=; apply: ler_wpmul2l; first exact/ltW/up.
have part0 S : 0 <= part S by rewrite /part; case: ifP => _; apply/ltW/vp.
apply: (@le_trans _ _ (\sum_(S in choices q) part S)).
  rewrite [X in X <= _]big_mkcond [X in _ <= X]big_mkcond; apply: ler_sum => S _.
  by rewrite in_setD; case: (S \in choices q); rewrite ?andbF // andbT; case: ifP.
rewrite (bigID (fun S => first_missing q S < k)%N) /= addrC; apply: ler_add.
  rewrite (eq_bigr (fun=> v ^ (- (stat q k.-1 - c)))); last first.
    by move=> S /andP[_ /negbTE ge]; rewrite /part ge.
  apply: (@le_trans _ _ (\sum_(S : {set I} | S == top q k) v ^ (- (stat q k.-1 - c)))); last first.
    by rewrite big_pred1_eq.
  rewrite [X in X <= _]big_mkcond [X in _ <= X]big_mkcond; apply: ler_sum => S _.
  case: ifP => [/andP[/choices_card cS]|_]; last by case: ifP => // _; apply/ltW/vp.
  rewrite -leqNgt => ge; have eh : first_missing q S = k by apply/eqP; rewrite eqn_leq missing_le.
  suff -> : S == top q k by [].
  rewrite eq_sym eqEcard -{1}eh prefix_in //= cS card_top ?leqnn //.
  exact: ltnW (ltn_trans kk kK).
apply: (@le_trans _ _ (\sum_(S in choices q) \sum_(h < k)
    (if first_missing q S == h then v ^ (- stat q h) else 0))).
  rewrite [X in X <= _]big_mkcond [X in _ <= X]big_mkcond; apply: ler_sum => S _.
  have rest0 (P : pred 'I_k) : 0 <= \sum_(h < k | P h) (if first_missing q S == h then v ^ (- stat
    q h) else 0).
    by apply: sumr_ge0 => h _; case: ifP => // _; apply/ltW/vp.
  case: (S \in choices q) => //=; case: ifP => [lt|_]; last exact: rest0.
  by rewrite (bigD1 (Ordinal lt)) //= eqxx /part lt ler_addl rest0.
rewrite exchange_big /=; apply: ler_sum => h _; rewrite -big_mkcondr /=.
rewrite (eq_bigl (mem [set S in choices q | first_missing q S == h])); last by move=> S;
  rewrite !inE.
rewrite big_const iter_addr_0 -[X in X <= _]mulr_natl; apply: ler_wpmul2r; first exact/ltW/vp.
by rewrite ler_nat count_missing.
Qed.

End Sets.

(* One stage of the page, and that it may stand in a cascade. *)
Section OneStage.
Variables (R : realFieldType) (I : finType) (u v : R) (c : int) (k kbar : nat).
Hypotheses (u1 : 1 <= u) (v1 : 1 <= v) (c0 : 0 <= c).
Hypotheses (k0 : (0 < k)%N) (kk : (k < kbar)%N) (kK : (kbar < #|I|)%N).
Variables (m n : nat) (root : R -> R) (rho delta : R).
Hypotheses (m0 : (0 < m)%N) (mn : (m <= n)%N) (d0 : 0 < delta).
Hypothesis root_gt0 : forall y, 0 < y -> 0 < root y.
Hypothesis rootK : forall y, 0 < y -> root y ^+ n = y.
(* e^epsilon = e^((a + b) c), and x = m/n. *)
Hypotheses (rho1 : 1 <= rho) (rho_eps : rho ^+ n = (u * v) ^ c).
Implicit Types q : I -> int.

(* "g = (x/delta) B" *)
Definition set_guard q : R := m%:R / n%:R / delta * bound u v c k kbar q.
Definition set_release q : {set I} -> R :=
  soft m root (set_weight u v q) (choices k kbar q) (set_guard q).
Definition set_silence q : R := silence m root (all_weight u v k kbar q) (set_guard q).

Let kI : (k < #|I|)%N. Proof. exact: ltn_trans kK. Qed.

Let x0 : 0 < m%:R / n%:R :> R.
Proof. by rewrite divr_gt0 ?ltr0n // (leq_trans m0). Qed.

Lemma set_guard_gt0 q : 0 < set_guard q.
Proof. by apply: mulr_gt0; [apply: divr_gt0 | apply: bound_gt0]. Qed.

Theorem set_stage_private q q' : drift c q q' ->
  close (set_release q) (set_release q') (rho ^+ n) delta /\
  set_silence q <= rho ^+ m * set_silence q'.
Proof.
case=> lo nb; have A0 := low_gt0 c u1 v1 lo.
have gg : within (low u v c lo) (rho ^+ n) (set_guard q) (set_guard q').
  rewrite rho_eps; apply: within_scale; last exact: bound_within.
  by rewrite ltW // divr_gt0.
have WW : within (low u v c lo) (rho ^+ n) (all_weight u v k kbar q) (all_weight u v k kbar q').
  by rewrite rho_eps; apply: all_weight_within.
have W0 (e : I -> int) : 0 < all_weight u v k kbar e by apply: all_weight_gt0; rewrite // ltnW.
have g0 := set_guard_gt0.
split; last by apply: (@soft_silence _ m n root rho m0 mn rho1 root_gt0 rootK _ _ _ _ _ A0).
apply: (@soft_guard _ _ m n root rho m0 mn rho1 root_gt0 rootK _ _ _ _ (low u v c lo) _ _ _ (bound
  u v c k kbar q)) => //.
- by move=> S; apply: set_weight_gt0.
- by move=> S; apply: set_weight_gt0.
- exact: W0.
- exact: W0.
- move=> S /choices_card cS _; rewrite rho_eps.
  exact: (set_weight_within u1 v1 k0 kI nb cS).
- exact: (slip_bound u1 v1 k0 kI kk kK nb).
by rewrite /set_guard [X in _ <= X]mulrA [delta * (_ / delta)]mulrC divfK ?gt_eqF.
Qed.

Lemma set_silence_in q : 0 < set_silence q < 1.
Proof.
have W0 : 0 < all_weight u v k kbar q by apply: all_weight_gt0; rewrite // ltnW.
exact: (silence_in m0 root_gt0 rootK W0 (set_guard_gt0 q)).
Qed.

Lemma set_release_ge0 q A : 0 <= set_release q A.
Proof.
rewrite /set_release /soft; case: ifP => // _; have /andP[_ lt1] := set_silence_in q.
apply: mulr_ge0; first by rewrite subr_ge0 ltW.
apply: divr_ge0; first exact/ltW/set_weight_gt0.
by apply: sumr_ge0 => T _; apply/ltW/set_weight_gt0.
Qed.

Lemma set_release_sum q : \sum_A set_release q A + set_silence q = 1.
Proof.
have W0 : 0 < all_weight u v k kbar q by apply: all_weight_gt0; rewrite // ltnW.
rewrite /set_release /soft -big_mkcond -big_distrr /= -big_distrl /= divff ?gt_eqF // mulr1.
by rewrite subrK.
Qed.

End OneStage.

(* "Closed universe. Let K <= kbar, and let H = H' be everybody. Nobody slips, and P(S) = w(S)/W
   moves by a factor of at most e^epsilon_j. So there is no need for nothing, and no stage after it.
   With k = K there is one set." *)
Section Everybody.
Variables (R : realFieldType) (I : finType) (u v : R) (c : int) (k : nat).
Hypotheses (u1 : 1 <= u) (v1 : 1 <= v) (c0 : 0 <= c) (k0 : (0 < k)%N) (kI : (k <= #|I|)%N).
Implicit Types q : I -> int.

Definition everybody q (A : {set I}) : R :=
  if #|A| == k then set_weight u v q A / all_weight u v k #|I| q else 0.

Lemma in_choices q (A : {set I}) : (A \in choices k #|I| q) = (#|A| == k).
Proof. by rewrite inE top_all // subsetT. Qed.

Lemma everybody_weight q : 0 < all_weight u v k #|I| q.
Proof. exact: all_weight_gt0. Qed.

Theorem everybody_law q : is_law (everybody q).
Proof.
have W0 := everybody_weight q; split=> [A|].
  by rewrite /everybody; case: ifP => // _; rewrite divr_ge0 ?(ltW W0) // ltW ?set_weight_gt0.
rewrite /everybody -big_mkcond -big_distrl /=.
rewrite (eq_bigl (mem (choices k #|I| q))) => [|A]; last by rewrite [RHS]in_choices.
by rewrite divff // gt_eqF.
Qed.

Lemma everybody_all q A : k = #|I| -> everybody q A = (A == setT)%:R.
Proof.
move=> e; have other T : T != setT -> everybody q T = 0.
  move=> ne; rewrite /everybody ifN //; apply: contra ne => /eqP cT.
  by rewrite eqEcard subsetT cardsT -e cT leqnn.
case: (eqVneq A setT) => [->|/other //]; have [_] := everybody_law q.
by rewrite (bigD1 setT) //= big1 ?addr0.
Qed.

(* "a single stage of that kind is (epsilon, 0)-differentially private" *)
Theorem everybody_private : private (@drift I c) everybody ((u * v) ^ c) 0.
Proof.
have r1 : 1 <= (u * v) ^ c by rewrite -[X in X <= _](expr0z (u * v)) ler_weexpz2l // mulr_ege1.
move=> q q' [lo nb]; apply: pointwise_close => A.
case: (ltngtP k #|I|) => [lt|gt|e]; last first.
- by rewrite !everybody_all // ler_pemull ?ler0n.
- by move: kI; rewrite leqNgt gt.
have W0 := everybody_weight q; have W'0 := everybody_weight q'.
rewrite /everybody; case: eqP => [cA|_]; last by rewrite mulr0.
apply: (within_ratio (low_gt0 c u1 v1 lo)) => //.
- exact/ltW/set_weight_gt0.
- exact: le_trans r1.
- exact: (set_weight_within u1 v1 k0 lt nb cA).
- exact: (all_weight_within _ u1 v1 lt nb).
Qed.

End Everybody.

(* "The test of the best set": a stage with kbar = k. y is e^(x epsilon). *)
Section BestSet.
Variables (R : realFieldType) (I : finType) (r y delta : R) (c k : nat).
Hypotheses (r1 : 1 <= r) (y1 : 1 <= y) (d0 : 0 <= delta).
Hypotheses (c0 : (0 < c)%N) (k0 : (0 < k)%N) (kK : (k < #|I|)%N).
Implicit Types q : I -> int.

(* "pi(0) = 0, pi(n+1) = min{ e^epsilon pi(n) + delta, 1 - e^(-x epsilon) (1 - pi(n)) }" *)
Definition soft_next (p : R) : R := Num.min (r * p + delta) (1 - y^-1 * (1 - p)).
Fixpoint soft_chance (n : nat) : R := if n is m.+1 then soft_next (soft_chance m) else 0.

Let y0 : 0 < y. Proof. exact: lt_le_trans y1. Qed.
Let yi : y^-1 <= 1. Proof. by rewrite invf_le1. Qed.

(* "pi does not fall: e^epsilon pi + delta >= pi and 1 - e^(-x epsilon) (1 - pi) >= pi." *)
Lemma soft_in n : 0 <= soft_chance n <= 1 /\ soft_chance n <= soft_chance n.+1.
Proof.
elim: n => [|n [/andP[p0 p1] up]].
  split; first by rewrite lexx ler01.
  by rewrite /= /soft_next le_minr mulr0 add0r d0 subr0 mulr1 subr_ge0.
have p1' : soft_chance n.+1 <= 1.
  rewrite /= /soft_next le_minl [X in _ || X]ler_subl_addr ler_addl mulr_ge0 ?orbT ?invr_ge0
    ?(ltW y0) //.
  by rewrite subr_ge0.
have p0' : 0 <= soft_chance n.+1 by apply: le_trans up.
split; first by rewrite p0' p1'.
rewrite [X in _ <= X]/= /soft_next le_minr; apply/andP; split.
  by rewrite -[X in X <= _]addr0; apply: ler_add => //; rewrite ler_pemull.
rewrite ler_subr_addr -ler_subr_addl; rewrite ler_pimull // subr_ge0.
exact: p1'.
Qed.

Lemma soft_le m n : (m <= n)%N -> soft_chance m <= soft_chance n.
Proof.
elim: n => [|n IH]; first by rewrite leqn0 => /eqP->.
rewrite leq_eqVlt => /orP[/eqP-> //|]; rewrite ltnS => /IH le.
by apply: le_trans le _; case: (soft_in n).
Qed.

(* "And pi(1) = min{delta, 1 - e^(-x epsilon)} <= delta." *)
Lemma soft1 : soft_chance 1 <= delta.
Proof. by rewrite /= /soft_next mulr0 add0r le_minl lexx. Qed.

(* "P(best) = pi(n), P(nothing) = 1 - pi(n)" *)
Definition best_set q (A : {set I}) : R := if A == top q k then soft_chance (steps c k q) else 0.
Definition best_silence q : R := 1 - soft_chance (steps c k q).

(* "Lemma 5. (a) P(best) <= e^epsilon P'(best) + delta where the best set is the same in both, (b)
   P(best) <= delta where it is not, (c) as in lemma 3." *)
Theorem best_set_stage q q' : drift c q q' ->
  close (best_set q) (best_set q') r delta /\ best_silence q <= y * best_silence q'.
Proof.
case=> lo nb; have up := steps_close c0 kK nb; have down := steps_close c0 kK (moves_sym nb).
have in01 n : 0 <= soft_chance n <= 1 by case: (soft_in n).
have r0 : 0 <= r by apply: le_trans r1.
split; last first.
  rewrite /best_silence; apply: (@le_trans _ _ (y * (1 - soft_chance (steps c k q).+1)));
    last first.
    by apply: ler_wpmul2l; [apply: ltW | rewrite ler_add2l ler_opp2; apply: soft_le].
  rewrite -ler_pdivr_mull // ler_subr_addl -ler_subr_addr.
  by rewrite /= /soft_next le_minl lexx orbT.
have sum_one e (T : {set {set I}}) : Pr (best_set e) T =
    if top e k \in T then soft_chance (steps c k e) else 0.
  rewrite /Pr; case: ifP => [eT|/negbT eT].
    rewrite (bigD1 (top e k)) //= {1}/best_set eqxx big1 ?addr0 // => A /andP[_ /negbTE ne].
    by rewrite /best_set ne.
  apply: big1 => A AT; rewrite /best_set; case: eqP => // e'.
  by rewrite -e' AT in eT.
move=> T; rewrite !sum_one; case: (eqVneq (top q k) (top q' k)) => [same|ne].
  rewrite -same; case: ifP => _; last by rewrite mulr0 add0r.
  apply: (@le_trans _ _ (soft_chance (steps c k q').+1)); first exact: soft_le.
  by rewrite /= /soft_next le_minl lexx.
have small : soft_chance (steps c k q) <= delta.
  apply: le_trans soft1; apply: soft_le; exact: (differ_steps c0 k0 kK nb ne).
apply: (@le_trans _ _ delta); first by case: ifP.
by rewrite ler_addr mulr_ge0 //; case: ifP => // _; case/andP: (in01 (steps c k q')).
Qed.

Lemma best_set_sum q : \sum_A best_set q A + best_silence q = 1.
Proof.
rewrite (bigD1 (top q k)) //= {1}/best_set eqxx big1 ?addr0 => [|A /negbTE ne].
  by rewrite /best_silence addrC subrK.
by rewrite /best_set ne.
Qed.

End BestSet.

(* The mechanism of the page from one end to the other: a cascade of stages of the three kinds. *)
Section SetMargin.
Variables (R : realFieldType) (I : finType) (c : nat).
Hypothesis c0 : (0 < c)%N.
Implicit Types q : I -> int.

(* The public parameters of a stage. u = e^a, v = e^b.
   Draw       k < kbar < K, x = m/n, e^epsilon_j = rho^n
   Test       kbar = k < K, e^epsilon_j = r, y = e^(x epsilon_j)
   Whole      K <= kbar: everybody takes part *)
Inductive stage : Type :=
  | Draw (k kbar m n : nat) (root : R -> R) (u v rho delta : R)
  | Test (k : nat) (r y delta : R)
  | Whole (k : nat) (u v : R).

Definition released q (a : stage) : {set I} -> R :=
  match a with
  | Draw k kbar m n root u v _ delta => set_release u v c k kbar m n root delta q
  | Test k r y delta => best_set r y delta c k q
  | Whole k u v => everybody u v k q
  end.

Definition nothing q (a : stage) : R :=
  match a with
  | Draw k kbar m n root u v _ delta => set_silence u v c k kbar m n root delta q
  | Test k r y delta => best_silence r y delta c k q
  | Whole _ _ _ => 0
  end.

(* e^(x_j epsilon_j); x_J = 1 for a stage that everybody takes part in, which ends the cascade. *)
Definition factor (a : stage) : R :=
  match a with
  | Draw _ _ m _ _ _ _ rho _ => rho ^+ m
  | Test _ _ y _ => y
  | Whole _ u v => (u * v) ^ c
  end.

Definition loss (a : stage) : R :=
  match a with
  | Draw _ _ _ _ _ _ _ _ delta => delta
  | Test _ _ _ delta => delta
  | Whole _ _ _ => 0
  end.

(* The cascade on scores q: the number of the stage, and its set. *)
Definition set_margin (s : seq stage) q : outcome [finType of {set I}] (size s) -> R :=
  @cascade R [finType of {set I}] stage (released q) (nothing q) s.
Arguments set_margin : clear implicits.

(* root gives n-th roots, as of real numbers. *)
Definition is_root (n : nat) (root : R -> R) : Prop :=
  forall y, 0 < y -> 0 < root y /\ root y ^+ n = y.

(* The parameters of a stage at e^epsilon_j = r. "a = t epsilon/c, b = (1 - t) epsilon/c": u^c v^c =
   r. *)
Definition fits (r : R) (a : stage) : Prop :=
  match a with
  | Draw k kbar m n root u v rho delta =>
    [/\ [/\ 1 <= u, 1 <= v & (u * v) ^ c = r], [/\ (0 < k)%N, (k < kbar)%N & (kbar < #|I|)%N],
        (0 < m)%N /\ (m <= n)%N, [/\ 1 <= rho, rho ^+ n = r & is_root n root] & 0 < delta]
  | Test k r' y delta => [/\ r' = r, 1 <= y, 0 <= delta, (0 < k)%N & (k < #|I|)%N]
  | Whole k u v => [/\ [/\ 1 <= u, 1 <= v & (u * v) ^ c = r], (0 < k)%N & (k <= #|I|)%N]
  end.

(* "epsilon_1 = epsilon, epsilon_(j+1) = (1 - x_j) epsilon_j, x_J = 1": the budget r = e^epsilon
   falls by the factor of each stage, and nothing is left in the end. *)
Fixpoint budget (r : R) (s : seq stage) : Prop :=
  if s is a :: s' then fits r a /\ budget (r / factor a) s' else r = 1.

Lemma factor_ge1 r a : fits r a -> 1 <= factor a.
Proof.
case: a => /= [k kbar m n root u v rho delta|k r' y delta|k u v].
- by case=> _ _ _ [rho1 _ _] _; apply: exprn_ege1.
- by case.
- by case=> -[u1 v1 _] _ _; rewrite -[X in X <= _](expr0z (u * v)) ler_weexpz2l // mulr_ege1.
Qed.

Lemma budget_spent r s : budget r s -> spent factor s = r /\ 1 <= r.
Proof.
elim: s r => [|a s IH] r /=; first by move->.
case=> /factor_ge1 f1 /IH[-> r1]; have f0 : 0 < factor a by apply: lt_le_trans f1.
rewrite mulrC divfK ?gt_eqF //; split=> //.
by rewrite ler_pdivl_mulr // mul1r in r1; apply: le_trans r1.
Qed.

Lemma fits_law r a q : 1 <= r -> fits r a ->
  [/\ forall A, 0 <= released q a A, 0 <= nothing q a & \sum_A released q a A + nothing q a = 1].
Proof.
move=> r1; case: a => /= [k kbar m n root u v rho delta|k r' y delta|k u v].
- case=> -[u1 v1 _] [k0 kk kK] [m0 mn] [_ _ rt] d0.
  have rt0 y : 0 < y -> 0 < root y by case/rt.
  have rtK y : 0 < y -> root y ^+ n = y by case/rt.
  split=> [A||]; first exact: set_release_ge0.
    suff /andP[/ltW] : 0 < set_silence u v c k kbar m n root delta q < 1 by [].
    exact: set_silence_in.
  exact: set_release_sum.
- case=> -> y1 d0 k0 kK;
  have in01 n : 0 <= soft_chance r y delta n <= 1 by case: (soft_in r1 y1 d0 n).
  have /andP[p0 p1] := in01 (steps c k q).
  split=> [A||]; first by rewrite /best_set; case: ifP.
    by rewrite /best_silence subr_ge0.
  exact: best_set_sum.
- case=> -[u1 v1 _] k0 kI; have [ge0 sum1] := everybody_law u1 v1 kI q.
  by split=> //; rewrite addr0.
Qed.

Theorem set_margin_law r s q : budget r s -> is_law (set_margin s q).
Proof.
move=> b; apply: cascade_law; elim: s r b => //= a s IH r [ok b].
have [_ r1] : spent factor (a :: s) = r /\ 1 <= r by apply: budget_spent.
by have [? ? ?] := fits_law q r1 ok; split=> //; apply: IH b.
Qed.

(* Lemma 3, lemma 5 and the closed universe, for a stage at e^epsilon_j = r. *)
Lemma fits_close r a q q' : 1 <= r -> fits r a -> drift c q q' ->
  close (released q a) (released q' a) r (loss a) /\ nothing q a <= factor a * nothing q' a.
Proof.
move=> r1; case: a => /= [k kbar m n root u v rho delta|k r' y delta|k u v].
- case=> -[u1 v1 e] [k0 kk kK] [m0 mn] [rho1 rhoE rt] d0 nb.
  have rt0 y : 0 < y -> 0 < root y by case/rt.
  have rtK y : 0 < y -> root y ^+ n = y by case/rt.
  have rho_eps : rho ^+ n = (u * v) ^ c by rewrite e.
  rewrite -rhoE; exact: set_stage_private.
- by case=> -> y1 d0 k0 kK nb; apply: best_set_stage.
- by case=> -[u1 v1 <-] k0 kI nb; rewrite mulr0; split=> //; apply: everybody_private.
Qed.

Lemma budget_sound r s q q' : budget r s -> drift c q q' ->
  sound (released q) (released q') (nothing q) (nothing q') factor loss s.
Proof.
move=> b nb; elim: s r b => //= a s IH r [ok b].
have [e r1] : spent factor (a :: s) = r /\ 1 <= r by apply: budget_spent.
have [cl si] := fits_close r1 ok nb; rewrite /= in e; rewrite e.
have [ge0 n0 sum1] := fits_law q r1 ok; have [ge0' n0' _] := fits_law q' r1 ok.
have l0 : 0 <= loss a.
  by case: (a) ok => /= [k kbar m n root u v rho d []|k r' y d []|] //; move=> *; apply: ltW.
split=> //; last exact: IH b; last by rewrite (factor_ge1 ok).
by split=> //; rewrite n0 -sum1 ler_addr sumr_ge0.
Qed.

(* "Statement. A cascade is (epsilon, delta)-differentially private, in a closed or an open
   universe, and so is its set together with the number of the stage that gave it." delta is the sum
   of delta_j. *)
Theorem set_margin_private r s : budget r s ->
  private (@drift I c) (set_margin s) r (losses loss s).
Proof.
move=> b q q' nb; have [<- _] := budget_spent b.
by apply: cascade_close; apply: budget_sound b nb.
Qed.

End SetMargin.
