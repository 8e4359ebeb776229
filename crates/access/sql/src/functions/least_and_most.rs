//! `min` and `max` of groups of floats: the engine takes what it can't compare, which is NaN, for less and for more than what it has, and
//! begins with the least and the greatest finite number. `min` of 1, NaN and 2 was 2, of infinity 1.8e308.
//!
//! Here floats are counted as whole numbers in the same order, which is that of comparisons and of `order by`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use datafusion::scalar::ScalarValue;

pub(super) fn functions() -> [AggregateUDF; 2] {
    [min_udaf(), max_udaf()].map(|own| AggregateUDF::new_from_impl(OfGroups { own }))
}

/// The engine's function, for all but floats in groups.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfGroups {
    own: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for OfGroups {
    forebay_types::handed_on! {
        [own.inner()]
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn return_type(&self, kinds: &[DataType]) -> Result<DataType>;
        fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn is_descending(&self) -> Option<bool>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
        fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>>;
        fn reverse_expr(&self) -> ReversedUDAF;
        fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue>;
        fn documentation(&self) -> Option<&Documentation>;
        fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity;
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // Those of two bytes are counted one by one, which is right.
        !matches!(args.return_field.data_type(), DataType::Float16) && self.own.inner().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let kind = args.return_field.data_type().clone();
        let whole = match kind {
            DataType::Float32 => DataType::Int32,
            DataType::Float64 => DataType::Int64,
            _ => return self.own.inner().create_groups_accumulator(args),
        };
        let return_field = Arc::new(Field::new(args.name, whole, true));
        let own = self.own.inner().create_groups_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(AsWhole { own }))
    }
}

/// The least or greatest floats of groups, by the engine's of whole numbers. What goes in and out are floats.
struct AsWhole {
    own: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for AsWhole {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.own.update_batch(&each(values, whole)?, groups, filter, groups_count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        float(&self.own.evaluate(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        each(&self.own.state(emit_to)?, float)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], groups_count: usize) -> Result<()> {
        self.own.merge_batch(&each(values, whole)?, groups, groups_count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        each(&self.own.convert_to_state(&each(values, whole)?, filter)?, float)
    }

    fn size(&self) -> usize {
        self.own.size()
    }
}

fn each(arrays: &[ArrayRef], change: fn(&ArrayRef) -> Result<ArrayRef>) -> Result<Vec<ArrayRef>> {
    arrays.iter().map(change).collect()
}

/// Floats as whole numbers in the same order.
fn whole(floats: &ArrayRef) -> Result<ArrayRef> {
    let wholes: ArrayRef = match floats.data_type() {
        DataType::Float32 => {
            let floats = floats.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Int32Type>(|float| turned_32(float.to_bits().cast_signed())))
        }
        DataType::Float64 => {
            let floats = floats.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Int64Type>(|float| turned_64(float.to_bits().cast_signed())))
        }
        other => return internal_err!("floats are to be counted, and not {other}"),
    };
    Ok(wholes)
}

/// And back.
fn float(wholes: &ArrayRef) -> Result<ArrayRef> {
    let floats: ArrayRef = match wholes.data_type() {
        DataType::Int32 => {
            let wholes = wholes.as_primitive::<Int32Type>();
            Arc::new(wholes.unary::<_, Float32Type>(|whole| f32::from_bits(turned_32(whole).cast_unsigned())))
        }
        DataType::Int64 => {
            let wholes = wholes.as_primitive::<Int64Type>();
            Arc::new(wholes.unary::<_, Float64Type>(|whole| f64::from_bits(turned_64(whole).cast_unsigned())))
        }
        other => return internal_err!("floats were counted, and not {other}"),
    };
    Ok(floats)
}

/// Below zero, a float's bits grow as it gets less. Its own inverse.
fn turned_32(bits: i32) -> i32 {
    if bits < 0 { bits ^ i32::MAX } else { bits }
}

fn turned_64(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, Float32Array, Float64Array};

    use super::*;

    #[test]
    fn floats_are_whole_numbers_in_the_order_of_floats_and_come_back() {
        let in_order =
            [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 5e-324, 2.0, f64::MAX, f64::INFINITY, f64::NAN];
        let floats: ArrayRef = Arc::new(Float64Array::from_iter(in_order.into_iter().map(Some).chain([None])));
        let wholes = whole(&floats).unwrap();
        let counted = wholes.as_primitive::<Int64Type>();
        assert!(counted.values()[..in_order.len()].is_sorted_by(|one, next| one < next), "{counted:?}");
        assert!(counted.is_null(in_order.len()));
        let back = float(&wholes).unwrap();
        let back = back.as_primitive::<Float64Type>();
        assert!(in_order.iter().zip(back.values()).all(|(one, other)| one.to_bits() == other.to_bits()), "{back:?}");

        let narrow = [f32::NEG_INFINITY, -1.5, -0.0, 0.0, f32::MAX, f32::INFINITY, f32::NAN];
        let floats: ArrayRef = Arc::new(Float32Array::from_iter_values(narrow));
        let wholes = whole(&floats).unwrap();
        assert!(wholes.as_primitive::<Int32Type>().values().is_sorted_by(|one, next| one < next), "{wholes:?}");
        let back = float(&wholes).unwrap();
        let back = back.as_primitive::<Float32Type>();
        assert!(narrow.iter().zip(back.values()).all(|(one, other)| one.to_bits() == other.to_bits()), "{back:?}");
        assert!(whole(&wholes).is_err() && float(&floats).is_err());
    }
}
