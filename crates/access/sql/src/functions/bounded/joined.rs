//! `||` of texts and bytes as a function, so that it has a bound as others have: what it gives is given to it again, and doubles.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::kernels::concat_elements::concat_elements_dyn;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// Its name, where it is sent as well.
const NAME: &str = "||";

/// The operator of any number of texts or bytes, with its own types, nulls and name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Joined {
    signature: Signature,
}

impl Joined {
    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// A call in the place of the operator: one for a whole chain of one type, which is as deep as the longest of its parts then. What has no
/// type stays what it is.
pub(super) fn call(expr: Expr, schema: &DFSchema, joined: impl FnOnce() -> Arc<ScalarUDF>) -> Transformed<Expr> {
    let (left, right) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => (*left, *right),
        other => return Transformed::no(other),
    };
    let kinds = type_of(&left, schema).and_then(|before| Ok((both(&before, &right.get_type(schema)?)?, before)));
    match (kinds, left) {
        // In another type it may be another text: bytes of a letter that are joined before they become one.
        (Ok((kind, before)), Expr::ScalarFunction(mut call)) if call.func.name() == NAME && kind == before => {
            call.args.push(right);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        (Ok(_), left) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(joined(), vec![left, right]))),
        (Err(_), left) => {
            let (left, right) = (Box::new(left), Box::new(right));
            Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }))
        }
    }
}

/// The type of a side. That of a chain is the one of its first two parts.
fn type_of(side: &Expr, schema: &DFSchema) -> Result<DataType> {
    match side {
        Expr::ScalarFunction(call) if call.func.name() == NAME && call.args.len() > 2 => {
            both(&call.args[0].get_type(schema)?, &call.args[1].get_type(schema)?)
        }
        side => side.get_type(schema),
    }
}

fn both(left: &DataType, right: &DataType) -> Result<DataType> {
    BinaryTypeCoercer::new(left, &Operator::StringConcat, right).get_result_type()
}

/// The type of the whole chain.
fn common(kinds: &[DataType]) -> Result<DataType> {
    let Some((first, others)) = kinds.split_first() else { return internal_err!("|| is of two texts at least") };
    others.iter().try_fold(first.clone(), |left, right| both(&left, right))
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        NAME
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect::<Vec<_>>().join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        common(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(NAME, common(&kinds)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        Ok(match common(kinds)? {
            // As long as all of them together.
            DataType::FixedSizeBinary(_) => kinds.to_vec(),
            kind => vec![kind; kinds.len()],
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut joined: Option<ArrayRef> = None;
        for value in &args.args {
            let value = value.to_array(args.number_rows)?;
            joined = Some(match joined {
                Some(joined) => concat_elements_dyn(joined.as_ref(), value.as_ref())?,
                None => value,
            });
        }
        match joined {
            Some(joined) => Ok(ColumnarValue::Array(joined)),
            None => internal_err!("|| is of two texts at least"),
        }
    }
}
