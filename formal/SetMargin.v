(* The set margin mechanism: interval, slip, the soft guard, and the cascade.

   Page: docs/proofs/set-margin.md, same order.

   u = e^a and v = e^b, both >= 1; a + b = epsilon / c, so e^epsilon is (u v)^c. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Privmax Require Import Definitions Scores Exponential LimitedDomain.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section SoftGuard.
Variables (R : realFieldType) (O : finType).
(* x = m/n with 0 < m <= n. The power Y^x is root Y ^ m, where root gives the n-th root; real numbers have
   one. e^epsilon = rho ^ n, so e^(x epsilon) = rho ^ m. *)
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
by rewrite rootK // ler_pdivl_mulr ?addr_gt0 // mul1r -subr_ge0 opprD addrA subrr add0r oppr_ge0 leNgt W0.
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
have G k (y : R) : 0 < y -> 0 <= geo k y by move=> y0; apply: sumr_ge0 => i _; rewrite exprn_ge0 // ltW.
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
apply: ler_expn2r; rewrite ?nnegrE ?(ltW (root_gt0 _)) ?Y_gt0 //; apply: root_mono; rewrite ?Y_gt0 //.
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

(* "Lemma 3. For one stage at (epsilon, delta): (a) P(S) <= e^epsilon P'(S) for all S in both domains; (b) the sum of P(S) is
   at most delta over the S in H and not in H'." B bounds the weight of those; g = (x/delta) B. *)
Theorem soft_guard (w w' : O -> R) (H H' : {set O}) (A g g' delta B : R) :
  0 < A -> (forall S, 0 < w S) -> (forall S, 0 < w' S) -> 0 < g -> 0 < g' ->
  0 < \sum_(S in H) w S -> 0 < \sum_(S in H') w' S ->
  (forall S, within A (rho ^+ n) (w S) (w' S)) ->
  within A (rho ^+ n) (\sum_(S in H) w S) (\sum_(S in H') w' S) -> within A (rho ^+ n) g g' ->
  \sum_(S in H :\: H') w S <= B -> m%:R / n%:R * B <= delta * g ->
  close (soft w H g) (soft w' H' g') (rho ^+ n) delta.
Proof.
move=> A0 w0 w'0 g0 g'0 W0 W'0 ww WW gg slip guard.
have r0 : 0 < rho ^+ n by rewrite exprn_gt0 // (lt_le_trans ltr01).
have soft_psi (v : O -> R) (G : {set O}) k S : S \in G -> soft v G k S = v S * psi (\sum_(T in G) v T) k.
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
  apply: (within_ratio A0); rewrite ?invr_gt0 ?(ltW (w0 _)) ?(ltW r0) //.
  exact: psi_within.
rewrite /Pr (eq_bigr (fun S => w S * psi (\sum_(T in H) w T) g)); last first.
  by move=> S; rewrite inE => /andP[_ SH]; rewrite soft_psi.
rewrite -big_distrl /= -(ler_pmul2r g0) -mulrA.
apply: (@le_trans _ _ (B * (m%:R / n%:R))); last by rewrite mulrC.
apply: ler_pmul => //; last exact: psi_guard.
  by apply: sumr_ge0 => S _; apply: ltW.
by rewrite mulr_ge0 // ltW.
Qed.

(* "(c) P(nothing) <= e^(x epsilon) P'(nothing). Y moves by a factor of at most e^epsilon, and Y^x of e^(x epsilon)." *)
Theorem soft_silence (A W W' g g' : R) : 0 < A -> 0 < W -> 0 < W' -> 0 < g -> 0 < g' ->
  within A (rho ^+ n) W W' -> within A (rho ^+ n) g g' -> silence W g <= rho ^+ m * silence W' g'.
Proof.
move=> A0 W0 W'0 g0 g'0 WW gg; have rho0 : 0 < rho by apply: lt_le_trans rho1.
have z0 := root_gt0 (Y_gt0 W0 g0); have z'0 := root_gt0 (Y_gt0 W'0 g'0).
rewrite /silence -exprMn; apply: ler_expn2r; rewrite ?nnegrE ?mulr_ge0 ?(ltW rho0) ?(ltW z0) ?(ltW z'0) //.
apply: le_root; rewrite ?mulr_ge0 ?(ltW rho0) ?(ltW z0) ?(ltW z'0) //.
rewrite exprMn !rootK ?Y_gt0 //; apply: (within_ratio A0); rewrite ?addr_gt0 ?(ltW g0) ?exprn_ge0 ?(ltW rho0) //.
exact: within_add.
Qed.

End SoftGuard.

(* "Cascade. Stages 1 ... J, each run only if all before it gave nothing." *)
Section Cascade.
Variables (R : realFieldType) (O : finType).

(* What a stage is in D and in D': the probability of each set, and of nothing. *)
Record stage := Stage {
  released : O -> R; released' : O -> R; nothing : R; nothing' : R;
  factor : R; (* e^(x_j epsilon_j) *)
  loss : R (* delta_j *) }.

(* The outcome of a cascade of n stages: at which stage, and what; or nothing at all. *)
Fixpoint outcome (n : nat) : finType :=
  if n is n'.+1 then [finType of (O + outcome n')%type] else [finType of unit].

Fixpoint cascade (first : stage -> O -> R) (none : stage -> R) (s : seq stage) :
    outcome (size s) -> R :=
  match s with
  | [::] => fun _ => 1
  | a :: s' => fun o => match o with
    | inl A => first a A
    | inr o' => none a * cascade first none o'
    end
  end.

(* epsilon_j of the first of some stages is what they and all that follow may spend: the product of the factors
   of silence, because "epsilon_(j+1) = (1 - x_j) epsilon_j" and "x_J = 1". *)
Fixpoint spent (s : seq stage) : R := if s is a :: s' then factor a * spent s' else 1.
Fixpoint losses (s : seq stage) : R := if s is a :: s' then loss a + losses s' else 0.

(* (a), (b) and (c) of lemma 3 or lemma 5, with e^epsilon_j = spent (the stage and all after it). *)
Fixpoint sound (s : seq stage) : Prop :=
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

(* "Theorem. The cascade is (epsilon, the sum of delta_j)-differentially private, the number of the stage included." *)
Theorem cascade_close s : sound s ->
  close (@cascade released nothing s) (@cascade released' nothing' s) (spent s) (losses s).
Proof.
elim: s => [|a s IH] snd S /=; first by rewrite mul1r addr0.
case: snd => cl [sil /andP[n0 n1]] [n'0 r'0] [f1 l0] snd; have {}IH := IH snd.
have split_sum p k (q : outcome (size s) -> R) :
    Pr (fun o : O + outcome (size s) => match o with inl A => p A | inr o' => k * q o' end) S =
    Pr p [set o | inl o \in S] + k * Pr q [set o | inr o \in S].
  rewrite /Pr big_sumType /=; congr (_ + _); first by apply: eq_bigl => o; rewrite inE.
  by rewrite -big_distrr /=; congr (_ * _); apply: eq_bigl => o; rewrite inE.
rewrite !split_sum mulrDr addrACA; apply: ler_add; first exact: cl.
have s1 := spent_ge1 snd; have l0' := losses_ge0 snd.
set T := [set o | inr o \in S]; have IHT := IH T.
apply: (le_trans (ler_wpmul2l n0 IHT)); rewrite mulrDr; apply: ler_add; last by rewrite ler_pimull.
rewrite [X in X <= _]mulrA [X in _ <= X]mulrA; apply: ler_wpmul2r.
  by apply: Pr_ge0 => o; apply: cascade_ge0.
by rewrite mulrAC; apply: ler_wpmul2r => //; apply: le_trans s1.
Qed.

End Cascade.
