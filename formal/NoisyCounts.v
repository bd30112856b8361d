(* Noisy counts of what was released.

   Page: docs/proofs/counts.md. Noise takes every integer value, so a release has countably many
   outcomes; a probability is the sum of those of its outcomes (is_Pr). *)
From Privmax Require Import Prelude Definitions Scores LimitedDomain NoisyMaximum LargeMargin.

Section Countable.
Variable R : realFieldType.

(* Probabilities of countably many outcomes: no finite set of them has more than one. *)
Definition countable_law (O : eqType) (p : O -> R) : Prop :=
  (forall o, 0 <= p o) /\ forall s, uniq s -> \sum_(o <- s) p o <= 1.

(* (epsilon, delta)-privacy for one pair of laws, on finite sets; they suffice. *)
Definition countably_close (O : eqType) (p p' : O -> R) (r delta : R) : Prop :=
  forall s, uniq s -> \sum_(o <- s) p o <= r * (\sum_(o <- s) p' o) + delta.

Lemma countably_close_Pr (O : eqType) (p p' : O -> R) r delta (S : O -> Prop) v v' : 0 <= r ->
  countably_close p p' r delta -> is_Pr p S v -> is_Pr p' S v' -> v <= r * v' + delta.
Proof.
move=> r0 cl.
exact: (@finite_sets_suffice R _ (fun q q' : O -> R => countably_close q q' r delta) O id) p p' cl
  S v v'.
Qed.

Lemma pointwise_close_countable (O : eqType) (p p' : O -> R) r :
  (forall o, p o <= r * p' o) -> countably_close p p' r 0.
Proof. by move=> le s _; rewrite addr0 big_distrr /=; apply: ler_sum. Qed.

(* What privacy says of the mean of a number between 0 and 1. *)
Lemma countably_close_mean (O : eqType) (p p' f : O -> R) r delta (U : seq O) : 0 <= r ->
  (forall o, 0 <= p' o) -> countably_close p p' r delta -> (forall o, 0 <= f o <= 1) -> uniq U ->
  \sum_(o <- U) p o * f o <= r * (\sum_(o <- U) p' o * f o) + delta.
Proof.
move=> r0 p'0 cl f01 uU; pose S := [seq o <- U | r * p' o < p o].
have := cl S (filter_uniq _ uU); rewrite -ler_subl_addl big_distrr /= -sumrB => le.
rewrite -ler_subl_addl big_distrr /= -sumrB; apply: le_trans le; rewrite /S big_filter.
rewrite (bigID (fun o => r * p' o < p o)) /= -[X in _ <= X]addr0; apply: ler_add.
  apply: ler_sum => o lt; have /andP[_ f1] := f01 o.
  rewrite mulrA -mulrBl -[X in _ <= X]mulr1; apply: ler_wpmul2l => //.
  by rewrite subr_ge0 ltW.
rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => o; rewrite -leNgt => le.
have /andP[f0 _] := f01 o.
by rewrite mulrA -mulrBl -mulNr mulr_ge0 // oppr_ge0 subr_le0.
Qed.

(* "The release is a selection followed by a query that was chosen by its answer: sequential
   composition adds the costs." *)
Section Compose.
Variables (O1 O2 : eqType) (p p' : O1 -> R) (q q' : O1 -> O2 -> R) (r1 r2 delta1 delta2 : R).
Definition then_ (p : O1 -> R) (q : O1 -> O2 -> R) (o : O1 * O2) : R := p o.1 * q o.1 o.2.

Definition firsts (s : seq (O1 * O2)) := undup [seq x.1 | x <- s].
Definition seconds (s : seq (O1 * O2)) o := [seq x.2 | x <- s & x.1 == o].

Let by_first (F : O1 * O2 -> R) s :
  \sum_(x <- s) F x = \sum_(o <- firsts s) \sum_(x <- s | x.1 == o) F x.
Proof.
under [RHS]eq_bigr do rewrite big_mkcond.
rewrite exchange_big /=; apply: eq_big_seq => x xs.
rewrite (bigD1_seq x.1) ?undup_uniq ?mem_undup ?map_f //= eqxx big1 ?addr0 // => o.
by rewrite eq_sym => /negPf->.
Qed.

Lemma seconds_uniq s o : uniq s -> uniq (seconds s o).
Proof.
move=> us; rewrite map_inj_in_uniq ?filter_uniq // => -[a b] [a' b'].
by rewrite !mem_filter /= => /andP[/eqP-> _] /andP[/eqP-> _] ->.
Qed.

Lemma then_sum P Q s :
  \sum_(x <- s) then_ P Q x = \sum_(o <- firsts s) P o * \sum_(y <- seconds s o) Q o y.
Proof.
rewrite by_first; apply: eq_bigr => o _; rewrite big_distrr /= big_map big_filter.
by apply: eq_bigr => x /eqP <-.
Qed.

Lemma then_law : countable_law p -> (forall o, countable_law (q o)) -> countable_law (then_ p q).
Proof.
move=> [p0 p1] laws; split=> [x|s us]; first by rewrite mulr_ge0 //; case: (laws x.1).
rewrite then_sum; apply: (le_trans _ (p1 (firsts s) (undup_uniq _))).
by apply: ler_sum => o _; rewrite ler_pimulr //; case: (laws o) => _; apply; apply: seconds_uniq.
Qed.

Lemma then_close : 0 <= r1 -> 0 <= r2 -> 0 <= delta2 ->
  countable_law p -> countable_law p' ->
  (forall o, countable_law (q o)) -> (forall o, countable_law (q' o)) ->
  countably_close p p' r1 delta1 -> (forall o, countably_close (q o) (q' o) r2 delta2) ->
  countably_close (then_ p q) (then_ p' q') (r1 * r2) (delta1 + delta2).
Proof.
move=> r10 r20 d20 [p0 p1] [p'0 _] lq lq' cl1 cl2 s us; rewrite !then_sum.
set U := firsts s; have uU : uniq U by apply: undup_uniq.
pose b o := \sum_(y <- seconds s o) q' o y.
have b0 o : 0 <= r2 * b o by rewrite mulr_ge0 // sumr_ge0 // => y _; case: (lq' o).
pose h o := Num.min 1 (r2 * b o).
have h01 o : 0 <= h o <= 1 by rewrite /h le_minr ler01 b0 /= le_minl lexx.
apply: (@le_trans _ _ (\sum_(o <- U) p o * h o + delta2)).
  apply: (@le_trans _ _ (\sum_(o <- U) (p o * h o + p o * delta2))).
    apply: ler_sum => o _; rewrite -mulrDr; apply: ler_wpmul2l => //.
    rewrite /h addr_minl le_minr; apply/andP; split; last by apply: cl2; apply: seconds_uniq.
    have [_ le1] := lq o; apply: (le_trans (le1 _ (seconds_uniq o us))).
    by rewrite ler_addl.
  by rewrite big_split /= ler_add2l -big_distrl /= ler_pimull // p1.
rewrite addrA ler_add2r.
apply: (le_trans (countably_close_mean r10 p'0 cl1 h01 uU)).
rewrite ler_add2r -mulrA; apply: ler_wpmul2l => //.
rewrite big_distrr /=; apply: ler_sum => o _.
by rewrite mulrCA; apply: ler_wpmul2l => //; rewrite /h le_minl lexx orbT.
Qed.

End Compose.

(* Outcomes renamed one to one have the same probabilities. *)
Lemma is_Pr_shift (O : eqType) (p : O -> R) (phi psi : O -> O) (S : O -> Prop) v :
  cancel phi psi -> cancel psi phi -> is_Pr p S v -> is_Pr (p \o phi) (S \o phi) v.
Proof.
move=> c c' [below near]; split=> [s us sS|e e0].
  rewrite (eq_bigr (fun o => p (phi o))) // -(big_map phi xpredT p); apply: below.
    by rewrite map_inj_uniq //; apply: can_inj c.
  by move=> o /mapP[o' so' ->]; apply: sS.
have [s [us sS] lt] := near e e0; exists [seq psi o | o <- s].
  split; first by rewrite map_inj_uniq //; apply: can_inj c'.
  by move=> o /mapP[o' so' ->] /=; rewrite c'; apply: sS.
by rewrite big_map /= (eq_bigr p) // => o _; rewrite c'.
Qed.

(* Independent numbers with countable laws of their own. *)
Definition independent (J : finType) (Z : choiceType) (p : J -> Z -> R) (n : {ffun J -> Z}) : R :=
  \prod_j p j (n j).

(* All numbers from a finite set. *)
Lemma independent_box (J : finType) (Z : choiceType) (p : J -> Z -> R) (V : seq Z) : uniq V ->
  exists2 W : seq {ffun J -> Z},
    uniq W /\ (forall n : {ffun J -> Z}, (forall j, n j \in V) -> n \in W) &
    \sum_(n <- W) independent p n = \prod_j \sum_(z <- V) p j z.
Proof.
move=> uV; pose up (f : {ffun J -> seq_sub V}) : {ffun J -> Z} := [ffun j => ssval (f j)].
have up_inj : injective up.
  move=> f g /ffunP e; apply/ffunP => j; apply: val_inj.
  by have := e j; rewrite !ffunE.
exists [seq up f | f <- enum [finType of {ffun J -> seq_sub V}]].
  split=> [|n inV]; first by rewrite map_inj_uniq ?enum_uniq.
  apply/mapP; exists [ffun j => SeqSub (inV j)]; first by rewrite mem_enum.
  by apply/ffunP => j; rewrite !ffunE.
rewrite big_map big_enum /=.
rewrite (eq_bigr (fun j => \sum_(z : seq_sub V) p j (ssval z))).
  rewrite bigA_distr_bigA /=; apply: eq_bigr => f _; rewrite /independent.
  by apply: eq_bigr => j _; rewrite ffunE.
move=> j _; rewrite -big_enum -(big_map (fun z : seq_sub V => ssval z) xpredT (p j)).
apply: perm_big; apply: uniq_perm => //.
  by rewrite map_inj_uniq ?enum_uniq //; apply: val_inj.
move=> z; apply/idP/mapP => [zV|[z' _ ->]]; last exact: valP.
by exists (SeqSub zV); rewrite ?mem_enum.
Qed.

Lemma independent_bound (J : finType) (Z : choiceType) (p : J -> Z -> R) (B : J -> R) s :
  (forall j z, 0 <= p j z) -> (forall j V, uniq V -> \sum_(z <- V) p j z <= B j) -> uniq s ->
  \sum_(n <- s) independent p n <= \prod_j B j.
Proof.
move=> p0 bound us.
pose V := undup (flatten [seq [seq (n : {ffun J -> Z}) j | j <- enum J] | n <- s]).
have inV (n : {ffun J -> Z}) j : n \in s -> n j \in V.
  move=> ns; rewrite mem_undup; apply/flattenP; exists [seq n j | j <- enum J].
    by apply/mapP; exists n.
  by apply: map_f; rewrite mem_enum.
have uV : uniq V by apply: undup_uniq.
have [W [uW all] eq] := independent_box p uV.
apply: (@le_trans _ _ (\sum_(n <- W) independent p n)).
  by apply: part_sum => // n; [apply: prodr_ge0 | move=> ns; apply: all => j; apply: inV].
by rewrite eq; apply: ler_prod => j _; rewrite sumr_ge0 //= bound.
Qed.

Lemma independent_law (J : finType) (Z : choiceType) (p : J -> Z -> R) :
  (forall j, countable_law (p j)) -> countable_law (independent p).
Proof.
move=> laws; split=> [n|s us]; first by apply: prodr_ge0 => j _; case: (laws j).
rewrite [X in _ <= X](_ : 1 = \prod_(j : J) (1 : R)); last by rewrite big1.
by apply: independent_bound => // [j z|j]; case: (laws j).
Qed.

(* No noise: the law of 0. *)
Definition no_noise (k : int) : R := (k == 0)%:R.

Lemma no_noise_law : countable_law no_noise.
Proof.
split=> [k|s us]; first exact: ler0n.
have [in0|out] := boolP (0 \in s); last first.
  by rewrite big_seq big1 ?ler01 // => k ks; rewrite /no_noise; case: eqP ks => // ->;
    rewrite (negPf out).
rewrite (bigD1_seq 0) //= big1 ?addr0 /no_noise ?eqxx // => k /negPf -> //.
Qed.

Definition noise_on (J : finType) (S : {set J}) (p : int -> R) : {ffun J -> int} -> R :=
  independent (fun j => if j \in S then p else no_noise).

Lemma noise_on_law (J : finType) (S : {set J}) p :
  countable_law p -> countable_law (noise_on S p).
Proof.
move=> law; apply: independent_law => j; case: ifP => _ //.
exact: no_noise_law.
Qed.

End Countable.

Section Counts.
Variables (R : realFieldType) (D : Type) (neighbors : D -> D -> Prop).

(* A selection releases o; what is released then is made of numbers with noise: those of data d are
   count d o, the noise of one law is noise o, and make is what becomes of the noisy numbers. *)
Variables (O : finType) (J : finType) (A : Type).
Notation vector := {ffun J -> int}.
Variables (choose : D -> O -> R) (count : D -> O -> vector) (noise : O -> vector -> R).
Variable make : O -> vector -> A.

(* "x + N": the probability of the noisy numbers y is that of the noise y - x. *)
Definition noisy (p : vector -> R) (x y : vector) : R := p (y - x).

Lemma noisy_law p x : countable_law p -> countable_law (noisy p x).
Proof.
move=> [p0 p1]; split=> [y|s us]; first exact: p0.
rewrite -(big_map (fun y => y - x) xpredT p); apply: p1.
by rewrite map_inj_uniq // => a b /addIr.
Qed.

Definition with_counts (d : D) (o : O * vector) : R :=
  then_ (choose d) (fun o => noisy (noise o) (count d o)) o.

(* What is released is private: v is the probability that the selection and what is made of the
   noisy numbers are in T. *)
Definition counts_private (r delta : R) : Prop :=
  forall d d', neighbors d d' -> forall (T : O * A -> Prop) v v',
  is_Pr (with_counts d) (fun o => T (o.1, make o.1 o.2)) v ->
  is_Pr (with_counts d') (fun o => T (o.1, make o.1 o.2)) v' -> v <= r * v' + delta.

(* "Adding noisy counts to a released selection costs the sum of the two costs." What is made of
   the numbers may hide that all of them move by w; it is enough that the noise covers the rest of
   the move, for one w. *)
Theorem selection_then_counts r1 r2 delta1 delta2 : 0 <= r1 -> 0 <= r2 -> 0 <= delta2 ->
  (forall d, is_law (choose d)) -> (forall o, countable_law (noise o)) ->
  private neighbors choose r1 delta1 ->
  (forall o d d', neighbors d d' -> exists2 w : vector,
    forall y, make o (y + w) = make o y &
    countably_close (noise o) (noisy (noise o) (count d' o + w - count d o)) r2 delta2) ->
  counts_private (r1 * r2) (delta1 + delta2).
Proof.
move=> r10 r20 d20 laws noises priv covered d d' nb T v v' Pv Pv'.
have /fin_all_exists2[w same cl] := fun o => covered o d d' nb.
pose phi (o : O * vector) : O * vector := (o.1, o.2 - w o.1).
pose psi (o : O * vector) : O * vector := (o.1, o.2 + w o.1).
have c1 : cancel phi psi by case=> o y; rewrite /phi /psi /= subrK.
have c2 : cancel psi phi by case=> o y; rewrite /phi /psi /= addrK.
have {}Pv' := is_Pr_shift c1 c2 Pv'.
have count_law (p : O -> R) : is_law p -> countable_law p.
  case=> p0 p1; split=> // s us; rewrite -p1 -[X in _ <= X]big_enum.
  by apply: part_sum => //; [exact: enum_uniq | move=> o _; rewrite mem_enum].
have close : countably_close (with_counts d) (with_counts d' \o phi) (r1 * r2) (delta1 + delta2).
  have := @then_close R _ _ (choose d) (choose d') (fun o => noisy (noise o) (count d o))
    (fun o => noisy (noise o) (count d' o + w o)) r1 r2 delta1 delta2 r10 r20 d20.
  have eq s : \sum_(o <- s) (with_counts d' \o phi) o =
      \sum_(o <- s) then_ (choose d') (fun o => noisy (noise o) (count d' o + w o)) o.
    apply: eq_bigr => -[o y] _; rewrite /with_counts /then_ /noisy /=; congr (_ * noise o _).
    by rewrite opprD addrA addrAC.
  move=> all s us; rewrite eq; apply: all => //; try by move=> *; apply: count_law.
  - by move=> o; apply: noisy_law.
  - by move=> o; apply: noisy_law.
  - move=> s' us'; have e q : \sum_(o <- s') q o = Pr q [set o in s'].
      by rewrite big_uniq //; apply: eq_bigl => o; rewrite inE.
    by rewrite !e; apply: priv.
  move=> o s' us'; have := cl o [seq y - count d o | y <- s'].
  rewrite !big_map map_inj_uniq; last by move=> a b /addIr.
  move=> /(_ us') le; apply: (le_trans le); rewrite ler_add2r; apply: ler_wpmul2l => //.
  apply: ler_sum => y _; rewrite /noisy le_eqVlt; apply/orP; left; apply/eqP; congr (noise o _).
  by rewrite opprB addrA subrK.
have r0 : 0 <= r1 * r2 by rewrite mulr_ge0.
apply: (countably_close_Pr r0 close Pv).
have same' o y : make o (y - w o) = make o y by rewrite -same subrK.
case: Pv' => below near; split=> [s us sS|e e0].
  by apply: below => // x xs; have := sS x xs; rewrite /= same'.
have [s [us sS] lt] := near e e0; exists s => //; split=> // x xs.
by have := sS x xs; rewrite /= same'.
Qed.

End Counts.

(* "Discrete Laplace noise": independent for the members of the set that was released. *)
Section Laplace.
Variables (R : realFieldType) (x : R) (I : finType).
Hypotheses (x0 : 0 < x) (x1 : x < 1).
Notation vector := {ffun I -> int}.

Lemma laplace_countable_law : countable_law (laplace x).
Proof.
by split=> [k|s us]; [apply: laplace_ge0 | apply: laplace_sum].
Qed.

Definition laplace_for (S : {set I}) : vector -> R := noise_on S (laplace x).

Lemma laplace_for_law S : countable_law (laplace_for S).
Proof. by apply: noise_on_law; apply: laplace_countable_law. Qed.

(* "P(x)/P(x - u) <= e^(sum |u_i| / b)" *)
Lemma laplace_for_covers (S : {set I}) (u : vector) (n : nat) : (forall i, i \notin S -> u i = 0) ->
  (\sum_i `|u i| <= n)%N ->
  countably_close (laplace_for S) (noisy (laplace_for S) u) (x^-1 ^+ n) 0.
Proof.
move=> outside le; apply: pointwise_close_countable => y; rewrite /noisy.
have e1 : 1 <= x^-1 by rewrite invf_ge1 // ltW.
apply: (@le_trans _ _ (x^-1 ^+ (\sum_i `|u i|) * laplace_for S (y - u))); last first.
  by apply: ler_wpmul2r; [case: (laplace_for_law S) | apply: ler_weexpn2l].
rewrite expr_sum -big_split /=; apply: ler_prod => i _; rewrite !ffunE.
case: ifP => iS; last first.
  by rewrite outside ?iS // absz0 expr0 mul1r subr0 ler0n lexx.
rewrite laplace_ge0 //=; apply: laplace_ratio => //.
by rewrite opprB addrC subrK abszE.
Qed.

End Laplace.

(* A set of at most k items is released, and its counts. *)
Section LaplaceCounts.
Variables (R : realFieldType) (x : R) (I O : finType) (items : O -> {set I}) (k m s : nat).
Hypotheses (x0 : 0 < x) (x1 : x < 1) (at_most : forall o, (#|items o| <= k)%N).

(* "Given S, let x_i be the true score of its i-th item." *)
Definition true_counts (q : I -> int) (o : O) : {ffun I -> int} :=
  [ffun i => if i \in items o then q i else 0].

(* "The shift has at most m coordinates other than 0, all in [-s, s]." *)
Lemma total_move (T : {set I}) (u : {ffun I -> int}) : (forall i, i \notin T -> u i = 0) ->
  (forall i, (`|u i| <= s)%N) -> (\sum_i `|u i| <= #|T| * s)%N.
Proof.
move=> outside le; rewrite (bigID (mem T)) /= [X in (_ + X)%N]big1 ?addn0 => [|i iT]; last first.
  by rewrite outside.
by rewrite -sum_nat_const; apply: leq_sum.
Qed.

(* "Discrete Laplace noise with b = m s / epsilon'": m of the k counts move at most. *)
Theorem laplace_counts_private (choose : (I -> int) -> O -> R) r delta : 0 <= r ->
  (forall q, is_law (choose q)) ->
  private (fun q q' => replace_by s q q' /\ grows m q q') choose r delta ->
  counts_private (fun q q' => replace_by s q q' /\ grows m q q') choose true_counts
    (fun o => laplace_for x (items o)) (fun _ y => y) (r * x^-1 ^+ (minn k m * s)) (delta + 0).
Proof.
move=> r0 laws priv; apply: selection_then_counts => //.
- by rewrite exprn_ge0 // invr_ge0 ltW.
- by move=> o; apply: laplace_for_law.
move=> o q q' [near few]; exists 0 => [y|]; first by rewrite addr0.
rewrite addr0; apply: laplace_for_covers => // [i iS|].
  by rewrite !ffunE (negPf iS) subrr.
apply: (leq_trans (@total_move (items o :&: touched q q') _ _ _)) => [i|i|].
- rewrite !inE !ffunE; case: (i \in items o) => /=; last by rewrite subrr.
  by rewrite negbK => /eqP->; rewrite subrr.
- rewrite !ffunE; case: ifP => _; last by rewrite subrr absz0.
  by rewrite -lez_nat abszE.
rewrite leq_mul2r leq_min; apply/orP; right.
rewrite (leq_trans (subset_leq_card (subsetIl _ _)) (at_most o)).
exact: leq_trans (subset_leq_card (subsetIr _ _)) few.
Qed.

End LaplaceCounts.
